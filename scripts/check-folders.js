import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

// JavaScript, so that the lint needs nothing but what a checkout has. Fails when two folders import each other's values, by any way
// round. What is imported for its types alone is not imported when the program runs, and does not count.

const root = join(import.meta.dirname, '..')
const files = ['src', 'runtime'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, name)),
)
const sources = new Set(files.filter((name) => /\.tsx?$/.test(name)))

/** Imports as the formatter writes them: a statement begins a line, and says at once when it is for types alone. */
const statements =
  /^(?:import|export)(?<types> type)?\b[^'"`;=]*?(?:\bfrom )?'(?<path>\.[^']+)'|\bimport\('(?<later>\.[^']+)'\)/gm

/** Every import of a source by another one: `{ from, to, isType }`. */
const imports = [...sources].flatMap((from) =>
  [...readFileSync(join(root, from), 'utf8').matchAll(statements)]
    .map(({ groups: { types, path, later } }) => ({
      from,
      to: join(dirname(from), path ?? later),
      isType: types !== undefined,
    }))
    .filter(({ to }) => sources.has(to)),
)
const sayImport = ({ from, to }) => `${from} imports ${to}`

/** By folder: the folders whose values it imports, each with one import that shows it. */
const folders = new Map()
for (const found of imports) {
  const [from, to] = [dirname(found.from), dirname(found.to)]
  if (found.isType || from === to) continue
  if (!folders.has(from)) folders.set(from, new Map())
  if (!folders.get(from).has(to)) folders.get(from).set(to, found)
}

const loops = []
const done = new Set()
const visit = (folder, way) => {
  const at = way.indexOf(folder)
  if (at >= 0) return void loops.push([...way.slice(at), folder])
  if (done.has(folder)) return
  for (const next of folders.get(folder)?.keys() ?? []) visit(next, [...way, folder])
  done.add(folder)
}
for (const folder of folders.keys()) visit(folder, [])

for (const loop of loops) {
  console.error(`Folders that import each other: ${loop.join(' -> ')}`)
  for (const [index, to] of loop.slice(1).entries()) console.error(`  ${sayImport(folders.get(loop[index]).get(to))}`)
}
process.exitCode = loops.length === 0 ? 0 : 1
