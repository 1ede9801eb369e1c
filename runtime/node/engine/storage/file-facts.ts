import { type FSWatcher, watch } from 'node:fs'
import { dirname } from 'node:path'

interface Entry<T> {
  readonly of: string
  readonly value: T
  readonly watchers: readonly FSWatcher[]
}

/**
 * Caches facts about files, and drops them when a directory of the files changes (inotify(7)). The kernel queues the event before
 * the system call that made the change returns, and the event loop reads older events first. So the answer to a request shows every
 * change that was made before the request was sent. Without a watch (the limit of inotify is reached, or the directory cannot be
 * read) each `get` reads the files.
 */
export class FileFacts<T> {
  readonly #entries = new Map<string, Entry<T>>()

  /** The cached result of `read`. `key` names the owner of the files, `of` names the files, and `directories` contain them. */
  get(key: string, of: string, directories: () => readonly string[], read: () => T): T {
    const known = this.#entries.get(key)
    if (known?.of === of) return known.value
    this.forget(key)
    // The watch begins before the read, so that a change in between drops the result.
    const watchers = this.#watch(key, directories())
    try {
      const value = read()
      if (watchers !== undefined) this.#entries.set(key, { of, value, watchers })
      return value
    } catch (error) {
      for (const watcher of watchers ?? []) watcher.close()
      throw error
    }
  }

  /** Drops the cached result. Called after a change by this program, because its event may still be queued. */
  forget(key: string): void {
    const entry = this.#entries.get(key)
    this.#entries.delete(key)
    for (const watcher of entry?.watchers ?? []) watcher.close()
  }

  /** Undefined when one of the directories cannot be watched. */
  #watch(key: string, directories: readonly string[]): readonly FSWatcher[] | undefined {
    const watchers: FSWatcher[] = []
    try {
      for (const directory of directories) {
        // The first event closes the watch. So a guest that writes all the time costs one event for each read of its node.
        const changed = () => {
          if (this.#entries.get(key)?.watchers === watchers) this.forget(key)
        }
        watchers.push(watchNearest(directory, changed))
      }
      return watchers
    } catch {
      for (const watcher of watchers) watcher.close()
      return undefined
    }
  }
}

/** Watches a directory. A missing directory is watched for in the nearest parent that exists. */
function watchNearest(directory: string, changed: () => void): FSWatcher {
  try {
    return watch(directory, { persistent: false }, changed).on('error', changed)
  } catch (error) {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
    if (!isMissing || dirname(directory) === directory) throw error
    return watchNearest(dirname(directory), changed)
  }
}
