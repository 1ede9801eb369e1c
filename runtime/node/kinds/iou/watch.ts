import { type FSWatcher, watch } from 'node:fs'

/** A router writes its NVRAM in several steps; it is looked at when nothing came for so long, ms. */
const settleMs = 500

/** Calls back after a file in a directory has changed; the function that comes back ends that. */
export function watchFile(directory: string, name: string, changed: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  let watcher: FSWatcher | undefined
  try {
    watcher = watch(directory, (_, changedName) => {
      if (changedName !== name) return
      clearTimeout(timer)
      timer = setTimeout(changed, settleMs)
    })
    // The directory may go with its node.
    watcher.on('error', () => watcher?.close())
  } catch {
    // No more watches are to be had on this host: it is looked at when the router stops.
  }
  return () => {
    clearTimeout(timer)
    watcher?.close()
  }
}
