import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const cache = join(import.meta.dirname, '../../../node_modules/.cache/patchbay-iou')
const flags = ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror']
/** As images are called, for lists of them are made by name. */
const fileName = 'i86bi-stand-in.bin'

export type Bits = 32 | 64

/** Of the switches of gcc; not every processor's knows -m64. */
export const wordSize = (bits: Bits): readonly string[] => (bits === 32 ? ['-m32'] : [])

const made = new Map<Bits, Promise<string>>()

/** The path of the program, made once and kept for all test runs; 32 bits need gcc-multilib. */
export function standIn(bits: Bits = 64): Promise<string> {
  const known = made.get(bits) ?? make(bits)
  made.set(bits, known)
  return known
}

async function make(bits: Bits): Promise<string> {
  const sources = (await readdir(import.meta.dirname)).filter((name) => /\.[ch]$/.test(name)).sort()
  const { stdout: compiler } = await promisify(execFile)('gcc', ['--version'])
  const hash = createHash('sha256').update(`${flags} ${bits} ${process.arch} ${compiler}`)
  for (const name of sources) hash.update(`\0${name}\0`).update(await readFile(join(import.meta.dirname, name)))
  const directory = join(cache, hash.digest('hex').slice(0, 16))
  if (!(await isThere(directory))) await fill(directory, sources, bits)
  return join(directory, fileName)
}

/** The directory is there with the program in it, or not at all. */
async function fill(directory: string, sources: readonly string[], bits: Bits): Promise<void> {
  await mkdir(cache, { recursive: true })
  const work = await mkdtemp(join(cache, 'making-'))
  try {
    const code = sources.filter((name) => name.endsWith('.c'))
    const args = [...flags, ...wordSize(bits), '-o', join(work, fileName), ...code]
    await promisify(execFile)('gcc', args, { cwd: import.meta.dirname, timeout: 60_000 })
    await rename(work, directory)
  } catch (cause) {
    // Another worker was faster, and what it made is as good.
    if (!(await isThere(directory))) throw cause
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )
