import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { kvmState } from '../../runtime/node/drivers/qemu/kvm-guest.ts'
import { bundle } from '../../scripts/bundle.js'

declare module 'vitest' {
  interface ProvidedContext {
    /** The directory of the bundle. */
    bundled: string
    /** The digest of all that a bundle of this run is made of. */
    sources: string
    /** The `machine_emulator.acceleration` of services: KVM where guests run under it; else not each service tries it in vain. */
    acceleration: 'auto' | 'tcg'
    /** Where the Worker of this run is, once a test file has bundled it. */
    workerBundle: string
  }
}

const root = join(import.meta.dirname, '../..')
const cache = join(root, 'node_modules/.cache/bundled')
const dayMs = 86_400_000
/** Programs of the tests, which are bundled with ours. */
const others = { 'command-host': 'test/support/command-host.ts' }

/** Bundles the program as it is now for the test files: they start it hundreds of times, and its sources take much longer. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const workers: string[] = []
  const provide = async () => {
    const sources = await digestOfSources()
    project.provide('sources', sources)
    project.provide('bundled', await bundled(sources))
    const worker = join(cache, `worker-${randomUUID()}.js`)
    workers.push(worker)
    project.provide('workerBundle', worker)
  }
  project.provide('acceleration', (await kvmState()) === 'runs' ? 'auto' : 'tcg')
  await provide()
  project.onTestsRerun(provide)
  return async () => {
    for (const place of workers.flatMap((worker) => [worker, `${worker}.lock`])) await rm(place, { force: true })
  }
}

/**
 * The directory is named after what is in it: another run, of the same sources or of other ones, is not disturbed, and
 * what Node compiled is found again.
 */
async function bundled(sources: string): Promise<string> {
  await mkdir(cache, { recursive: true })
  // Where sources did not change, neither does their bundle: bundling takes seconds of all processors.
  const note = join(cache, `${sources}.of`)
  const known = await readFile(note, 'utf8').catch(() => undefined)
  const place = known !== undefined && existsSync(known) ? known : await make()
  await writeFile(note, place)
  await utimes(place, new Date(), new Date())
  await removeOld()
  return place
}

/** Of all that a bundle is made of, also one with additions of the tests. */
async function digestOfSources(): Promise<string> {
  const hash = createHash('sha256')
  const listed = await Promise.all(
    ['src', 'runtime', 'scripts', 'test/fixtures'].map(async (directory) =>
      (await readdir(join(root, directory), { recursive: true })).map((name) => join(directory, name)),
    ),
  )
  const names = [...listed.flat(), ...Object.values(others), 'package.json', 'package-lock.json']
  for (const name of names.filter((name) => /\.\w+$/.test(name)).sort()) {
    hash.update(name).update(await readFile(join(root, name)).catch(() => ''))
  }
  return hash.digest('hex').slice(0, 16)
}

async function make(): Promise<string> {
  const made = join(cache, randomUUID())
  // With NODE_OPTIONS=--enable-source-maps traces show the sources; it is not the default, as it slows each start.
  // The test processes run the sources, and are to find the keepers of the bundle.
  await bundle(made, { sourcemap: true, build: 'source', others })
  await writeFile(join(made, 'package.json'), '{ "type": "module" }\n')
  const hash = createHash('sha256')
  const files = (await readdir(made, { recursive: true })).filter((name) => /\.\w+$/.test(name))
  for (const name of files.sort()) hash.update(name).update(await readFile(join(made, name)))
  const place = join(cache, hash.digest('hex').slice(0, 16))
  // Where it is already there, that one stays.
  await rename(made, place).catch(() => rm(made, { recursive: true }))
  return place
}

/** Removes what no run used for a day. */
async function removeOld(): Promise<void> {
  for (const name of await readdir(cache)) {
    const { mtimeMs } = await stat(join(cache, name)).catch(() => ({ mtimeMs: Date.now() }))
    if (Date.now() - mtimeMs > dayMs) await rm(join(cache, name), { recursive: true, force: true })
  }
}
