import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
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
  return placed('next', (directory) =>
    bundle(directory, {
      build: 'next',
      define: { PATCHBAY_PROTOCOL: String(protocol + 1), PATCHBAY_RECORD_VERSION: String(record + 1) },
    }),
  )
}

export async function placed(name: string, make: (directory: string) => Promise<void>): Promise<string> {
  const [place, made] = [join(cache, name), join(cache, `${name}-${process.pid}`)]
  await mkdir(made, { recursive: true })
  await make(made)
  await writeFile(join(made, 'package.json'), '{ "type": "module" }\n')
  await rm(place, { recursive: true, force: true })
  await rename(made, place)
  return join(place, 'patchbay.js')
}
