import { statSync } from 'node:fs'

/** Caches the results of probes of files. A result is dropped when its file changes; a failure is not cached. */
export class FileProbes<T> {
  readonly #entries = new Map<string, { readonly stamp: string; readonly result: Promise<T> }>()

  /** The cached result for the file as it is now. */
  known(path: string): Promise<T> | undefined {
    const entry = this.#entries.get(path)
    return entry?.stamp === stampOf(path) ? entry.result : undefined
  }

  /** The cached result, or that of a new probe. `isFresh`: always a new probe. */
  get(path: string, probe: () => Promise<T>, isFresh = false): Promise<T> {
    const known = isFresh ? undefined : this.known(path)
    if (known !== undefined) return known
    const entry = { stamp: stampOf(path), result: probe() }
    this.#entries.set(path, entry)
    entry.result.catch(() => {
      if (this.#entries.get(path) === entry) this.#entries.delete(path)
    })
    return entry.result
  }
}

function stampOf(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path)
    return `${ino}:${size}:${mtimeMs}`
  } catch {
    return 'missing'
  }
}
