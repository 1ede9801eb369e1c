import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** The script of the reference page: from the package in a checkout, from beside the program when built. */
export function docsScript(): Promise<Uint8Array> {
  const isCheckout = import.meta.url.endsWith('.ts')
  const file = isCheckout
    ? createRequire(import.meta.url).resolve('rapidoc/dist/rapidoc-min.js')
    : fileURLToPath(new URL('./rapidoc-min.js', import.meta.url))
  return readFile(file)
}
