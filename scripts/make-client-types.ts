import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

// Writes src/client/calls.ts, unless the file belongs to the present sources. The lint, the compiler and the npm package read it. No program
// is made of it, as it has types only.

const root = join(import.meta.dirname, '..')
const target = join(root, 'src/client/calls.ts')
/** The digest of the sources and of the file that was made from them. */
const note = join(root, 'node_modules/.cache/client-types')

/** Of all that the file is made from, and of the file. */
async function digest(): Promise<string> {
  const hash = createHash('sha256')
  const sources = (await readdir(join(root, 'src'), { recursive: true })).filter((name) => name.endsWith('.ts'))
  const names = [...sources.map((name) => `src/${name}`), 'scripts/client-types.ts', 'package-lock.json', 'biome.json']
  for (const name of names.sort()) hash.update(`${name}\n`).update(await readFile(join(root, name)))
  return hash.digest('hex')
}

/** A file comes to its place whole: two runs may do it at once. */
async function replace(file: string, text: string): Promise<void> {
  const beside = `${file}.${process.pid}`
  try {
    await writeFile(beside, text)
    await rename(beside, file)
  } finally {
    await rm(beside, { force: true })
  }
}

async function make(): Promise<void> {
  const { clientTypes } = await import('./client-types.ts')
  const biome = join(root, 'node_modules/.bin/biome')
  const text = execFileSync(biome, ['format', '--stdin-file-path=calls.ts'], {
    cwd: root,
    input: clientTypes(),
    encoding: 'utf8',
    maxBuffer: 16 << 20,
  })
  if (text !== (await readFile(target, 'utf8').catch(() => ''))) {
    const { atime, mtime } = await stat(dirname(target))
    await replace(target, text)
    // A directory that changed would make the program out of date (scripts/run.js).
    await utimes(dirname(target), atime, mtime)
  }
  await mkdir(dirname(note), { recursive: true })
  await replace(note, await digest())
}

if (!existsSync(target) || (await readFile(note, 'utf8').catch(() => '')) !== (await digest())) {
  try {
    await make()
  } catch (error) {
    // A directory of another user, say; a file of older sources is as good as it gets.
    if (!existsSync(target) || !['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? ''))
      throw error
    console.error(`${target} is older than the sources, and cannot be replaced: ${(error as Error).message}`)
  }
}
