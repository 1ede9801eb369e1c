import { readFile } from 'node:fs/promises'
import { join, normalize } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type Asset, type Assets, assetOf } from '../../../../src/server/http/assets.ts'

/** In a build they are in `assets` beside the program, in a checkout in `runtime/vendor` and in the last build. */
const directories = (
  import.meta.url.endsWith('.ts') ? ['../../../vendor/', '../../../../dist/assets/'] : ['./assets/']
).map((it) => new URL(it, import.meta.url))
const ofWebUi = 'web-ui/'

/** The files that browsers load. Below `web-ui/` those of a directory; empty: none. */
export const assetsWith =
  (webUi: string): Assets =>
  async (name) => {
    if (webUi !== '' && name.startsWith(ofWebUi)) {
      const path = normalize(name.slice(ofWebUi.length))
      return path.startsWith('..') ? undefined : read(name, join(webUi, path))
    }
    // A name, not a path.
    if (!/^[\w-]+(\.[\w-]+)+$/.test(name)) return undefined
    for (const directory of directories) {
      const asset = await read(name, new URL(name, directory))
      if (asset !== undefined) return { ...asset, gzip: () => compressed(asset) }
    }
    return undefined
  }

async function read(name: string, path: string | URL): ReturnType<Assets> {
  const body = await readFile(path).catch(() => undefined)
  return body === undefined ? undefined : assetOf(name, body)
}

/** Files of the build that were asked for, compressed: each once, as they do not change. By their entity tags. */
const known = new Map<string, Promise<Uint8Array<ArrayBuffer>>>()

function compressed({ body, etag }: Asset): Promise<Uint8Array<ArrayBuffer>> {
  const before = known.get(etag)
  if (before !== undefined) return before
  const now = promisify(gzip)(body, { level: 9 })
  known.set(etag, now)
  return now
}
