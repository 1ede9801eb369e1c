import { join } from 'node:path'
import { Miniflare } from 'miniflare'
import { bundleWorker } from './bundle-worker.ts'

export interface WorkerOptions {
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  /** Where the state is kept. */
  readonly data: string
  /** Secrets and settings. */
  readonly bindings: Readonly<Record<string, string>>
  /** The Worker, if it was bundled before. */
  readonly script?: string
}

export interface RunningWorker {
  readonly url: string
  close(): Promise<void>
}

/** Runs the gateway's Worker on this machine. */
export async function runWorker({ host, port, data, bindings, script }: WorkerOptions): Promise<RunningWorker> {
  const worker = new Miniflare({
    modules: [{ type: 'ESModule', path: 'worker.js', contents: script ?? (await bundleWorker()) }],
    compatibilityDate: '2026-07-01',
    host,
    port,
    bindings,
    durableObjects: { FLEET: { className: 'FleetObject', useSQLite: true } },
    durableObjectsPersist: join(data, 'objects'),
  })
  const { href } = await worker.ready
  return { url: href.replace(/\/$/, ''), close: () => worker.dispose() }
}
