import { readFile } from 'node:fs/promises'

/** The script of the reference page: from `runtime/vendor` in a checkout, from beside the program when built. */
export function docsScript(): Promise<Uint8Array> {
  const isCheckout = import.meta.url.endsWith('.ts')
  return readFile(new URL(isCheckout ? '../vendor/rapidoc-min.js' : './rapidoc-min.js', import.meta.url))
}
