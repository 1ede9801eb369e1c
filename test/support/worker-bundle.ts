import { open, readFile, rename, writeFile } from 'node:fs/promises'
import { inject } from 'vitest'
import { bundleWorker } from '../../scripts/bundle-worker.ts'
import { hangMs } from './limits.ts'

let bundle: Promise<string> | undefined

/** The gateway's Worker of the present sources. One test process bundles it for all of a run: that takes seconds of a processor. */
export function workerBundle(): Promise<string> {
  bundle ??= found(inject('workerBundle'))
  return bundle
}

async function found(place: string): Promise<string> {
  const isOurs = await open(`${place}.lock`, 'wx').then(
    (lock) => lock.close().then(() => true),
    () => false,
  )
  if (isOurs) return make(place)
  for (
    const began = Date.now();
    Date.now() - began < hangMs;
    await new Promise((resolve) => setTimeout(resolve, 100))
  ) {
    const script = await readFile(place, 'utf8').catch(() => undefined)
    if (script !== undefined) return script
  }
  // Who began it has ended.
  return make(place)
}

async function make(place: string): Promise<string> {
  const script = await bundleWorker()
  await writeFile(`${place}.${process.pid}`, script)
  await rename(`${place}.${process.pid}`, place)
  return script
}
