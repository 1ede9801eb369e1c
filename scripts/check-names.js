import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

// JavaScript, so that the lint needs nothing but what a checkout has. Fails when two files export types of one name: a reader who
// searches for a name finds one meaning.

const root = join(import.meta.dirname, '..')
/** Made by a program: its names are those of the schemas, which are types of `src` as well. */
const generated = 'src/client/calls.ts'

const places = new Map()
const files = ['src', 'runtime'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`),
)
for (const file of files.sort()) {
  if (!/\.tsx?$/.test(file) || file === generated) continue
  const text = readFileSync(join(root, file), 'utf8')
  const names = text.matchAll(/^export (?:declare )?(?:abstract )?(?:class|interface|type|enum) (\w+)/gm)
  for (const name of new Set([...names].map(([, name]) => name))) places.set(name, [...(places.get(name) ?? []), file])
}

const shared = [...places].filter(([, files]) => files.length > 1)
for (const [name, files] of shared) console.error(`Types of one name: ${name} in ${files.join(' and ')}`)
process.exitCode = shared.length === 0 ? 0 : 1
