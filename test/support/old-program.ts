import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { inject } from 'vitest'
import { bundle } from '../../scripts/bundle.js'

const root = join(import.meta.dirname, '../..')
/** Below node_modules, where the native library is found. */
const cache = join(root, 'node_modules/.cache/programs')

/** The program of release 0.1.0 as it was built; its file. `scripts/old-build.ts` made the archive. */
export function program010(): Promise<string> {
  return placed('0.1.0', async (directory) => {
    const archive = await readFile(join(root, 'test/fixtures/patchbay-0.1.0.json.br'))
    const files = JSON.parse(brotliDecompressSync(archive).toString('utf8')) as Record<string, string>
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text)
  })
}

/** The present program as if protocol and records had become others since: each has a version that is one higher. */
export function nextProgram(protocol: number, record: number): Promise<string> {
  const define = { PATCHBAY_PROTOCOL: String(protocol + 1), PATCHBAY_RECORD_VERSION: String(record + 1) }
  return variant('next', { define })
}

/**
 * The present program, bundled in another way. What one test bundled, others find, also in later runs of the same sources: it takes
 * seconds of all processors.
 */
export async function variant(name: string, options: Parameters<typeof bundle>[1]): Promise<string> {
  const note = join(cache, `${name}-${inject('sources')}.of`)
  const known = await readFile(note, 'utf8').catch(() => '')
  if (existsSync(known)) return known
  const file = await placed(name, (directory) => bundle(directory, { build: name, ...options }))
  await writeFile(note, file)
  return file
}

/** A program that `make` writes, in a directory named after what is in it: other tests may be running the same one, or another. */
export async function placed(name: string, make: (directory: string) => Promise<void>): Promise<string> {
  const made = join(cache, randomUUID())
  await mkdir(made, { recursive: true })
  await make(made)
  await writeFile(join(made, 'package.json'), '{ "type": "module" }\n')
  const hash = createHash('sha256')
  const entries = await readdir(made, { recursive: true, withFileTypes: true })
  const files = entries.filter((it) => it.isFile()).map((it) => join(it.parentPath, it.name))
  for (const file of files.sort()) hash.update(file.slice(made.length)).update(await readFile(file))
  const place = join(cache, `${name}-${hash.digest('hex').slice(0, 16)}`)
  // Where it is there already, that one stays.
  await rename(made, place).catch(() => rm(made, { recursive: true }))
  return join(place, 'patchbay.js')
}
