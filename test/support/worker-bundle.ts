import { bundleWorker } from '../../scripts/bundle-worker.ts'

let bundle: Promise<string> | undefined

/** The gateway's Worker of the present sources. A test process bundles it once: that takes seconds on a busy host. */
export function workerBundle(): Promise<string> {
  bundle ??= bundleWorker()
  return bundle
}
