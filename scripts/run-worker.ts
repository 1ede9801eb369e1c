import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Miniflare, Response } from 'miniflare'
import { parse } from 'smol-toml'
import { bundleWorker } from './bundle-worker.ts'

export interface WorkerOptions {
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  /** Where the state is kept. */
  readonly data: string
  /** Secrets and settings. */
  readonly bindings: Readonly<Record<string, string>>
  /** Bindings of buckets of R2. */
  readonly buckets?: readonly string[]
  /** The Worker, if it was bundled before. */
  readonly script?: string
  /** Its Durable Objects, if it is not the present one. */
  readonly objects?: Readonly<Record<string, { readonly className: string; readonly useSQLite: true }>>
}

export interface RunningWorker {
  readonly url: string
  /** The keys in a bucket. */
  keysIn(bucket: string): Promise<string[]>
  close(): Promise<void>
}

const settings = join(import.meta.dirname, '../wrangler.toml')

/** By which rules workerd runs the Worker: those that `wrangler.toml` says. */
export async function workerRules(): Promise<{ compatibilityDate: string; compatibilityFlags: string[] }> {
  const { compatibility_date, compatibility_flags } = parse(await readFile(settings, 'utf8'))
  return { compatibilityDate: String(compatibility_date), compatibilityFlags: compatibility_flags as string[] }
}

/** What the main module is where the Worker is all there is. */
const itself = `export * from './worker.js'\nexport { default } from './worker.js'`

/**
 * The modules of a Worker that has `script` as `worker.js`. workerd asks for that one: Miniflare copies what is in the configuration of
 * workerd again for every few kilobytes that follow it, which takes a second where that is megabytes.
 */
export const modulesOf = (script: string, main = itself) => ({
  modules: [{ type: 'ESModule' as const, path: 'main.js', contents: main }],
  unsafeUseModuleFallbackService: true,
  unsafeModuleFallbackService: async () => Response.json({ name: 'worker.js', esModule: script }),
})

/** The Durable Objects of the Worker, by their bindings. */
export const durableObjects = {
  DIRECTORIES: { className: 'DirectoryObject', useSQLite: true },
  COMPUTES: { className: 'ComputeObject', useSQLite: true },
  PROJECTS: { className: 'ProjectObject', useSQLite: true },
} as const

/**
 * The same where state is kept: it is found by the key of a class. That of the directory is the name which the class had before, as
 * `renamed_classes` of `wrangler.toml` says to Cloudflare.
 */
const lastingObjects = {
  ...durableObjects,
  DIRECTORIES: { ...durableObjects.DIRECTORIES, unsafeUniqueKey: '-FleetObject' },
}

/** Runs the gateway's Worker on this machine, by the rules that it has at Cloudflare. */
export async function runWorker({
  host,
  port,
  data,
  bindings,
  buckets = [],
  script,
  objects,
}: WorkerOptions): Promise<RunningWorker> {
  const worker = new Miniflare({
    ...modulesOf(script ?? (await bundleWorker())),
    ...(await workerRules()),
    host,
    port,
    // The connections of an earlier process have ended with it.
    bindings: { ...bindings, PROCESS: crypto.randomUUID() },
    durableObjects: { ...(objects ?? lastingObjects) },
    durableObjectsPersist: join(data, 'objects'),
    r2Buckets: [...buckets],
    r2Persist: join(data, 'buckets'),
  })
  const { href } = await worker.ready
  return {
    url: href.replace(/\/$/, ''),
    async keysIn(bucket) {
      const { objects } = await (await worker.getR2Bucket(bucket)).list()
      return objects.map(({ key }) => key)
    },
    close: () => worker.dispose(),
  }
}
