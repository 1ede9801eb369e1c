import { readFile } from 'node:fs/promises'
import { type Assets, assetOf } from '../../../src/http/assets.ts'

/** In a checkout they are in `runtime/vendor`, in a build in `assets` beside the program. */
const directory = new URL(import.meta.url.endsWith('.ts') ? '../../vendor/' : './assets/', import.meta.url)

/** The files that browsers load. */
export const assets: Assets = async (name) => {
  // A name, not a path.
  if (!/^[\w-]+(\.[\w-]+)+$/.test(name)) return undefined
  const body = await readFile(new URL(name, directory)).catch(() => undefined)
  return body === undefined ? undefined : assetOf(name, body)
}
