import { readFile } from 'node:fs/promises'
import { join, normalize } from 'node:path'
import { type Assets, assetOf } from '../../../src/http/assets.ts'

/** In a checkout they are in `runtime/vendor`, in a build in `assets` beside the program. */
const directory = new URL(import.meta.url.endsWith('.ts') ? '../../vendor/' : './assets/', import.meta.url)
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
    return /^[\w-]+(\.[\w-]+)+$/.test(name) ? read(name, new URL(name, directory)) : undefined
  }

async function read(name: string, path: string | URL): ReturnType<Assets> {
  const body = await readFile(path).catch(() => undefined)
  return body === undefined ? undefined : assetOf(name, body)
}
