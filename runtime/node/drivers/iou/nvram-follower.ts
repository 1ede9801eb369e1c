import { type FSWatcher, watch } from 'node:fs'
import type { KindListener } from '../../engine/nodes/kind.ts'
import { nvramName } from './configs.ts'
import { pullConfigs, type ReadContext } from './nvram-files.ts'
import type { IouKindNode } from './properties.ts'

/** A router writes its NVRAM in several steps; the service reads it after a pause of this length, ms. */
const settleMs = 500

/** Copies configurations from the NVRAM of routers into their files. Callers hold the lock of the node. */
export class NvramFollower {
  readonly #listener: KindListener
  readonly #onWritten: (key: string) => void
  readonly #watches = new Map<string, () => void>()

  /** `onWritten` is called with the key of a node whose files may have changed. */
  constructor(listener: KindListener, onWritten: (key: string) => void) {
    this.#listener = listener
    this.#onWritten = onWritten
  }

  /** Follows the writes of a router. `isNew`: the router was just started, and has written nothing. */
  begin(node: IouKindNode, isNew: boolean): void {
    const { key, directory } = node
    const schedule = (why: ReadContext['why']) =>
      this.#listener.queued(key, async () => {
        // A failed read is repeated when the router stops.
        if (this.#watches.has(key)) await this.pull(node, { isRunning: true, why }).catch(() => [])
      })
    this.end(key)
    this.#watches.set(
      key,
      watchFile(directory, nvramName(node.record.properties.application_id), () => schedule('changed')),
    )
    // The router may have written while no service ran.
    if (!isNew) schedule('in case')
  }

  end(key: string): void {
    this.#watches.get(key)?.()
    this.#watches.delete(key)
  }

  pull({ key, directory, record }: IouKindNode, context: ReadContext): ReturnType<typeof pullConfigs> {
    return pullConfigs(directory, record.properties.application_id, context).finally(() => this.#onWritten(key))
  }

  /** Pulls without a client: problems become events. */
  async pullQuietly(node: IouKindNode, context: ReadContext): Promise<void> {
    const warn = (message: string) =>
      this.#listener.happened(node.key, { type: 'log.warning', message: `${node.record.name}: ${message}` })
    try {
      const doubtful = await this.pull(node, context)
      for (const name of doubtful) warn(`the NVRAM has another checksum than expected; ${name} is kept as ${name}.bak`)
    } catch (error) {
      warn(`its configuration could not be read from the NVRAM: ${(error as Error).message}`)
    }
  }
}

/** Calls back after a change of a file. Without a free watch (inotify(7)) the service reads the file when the router stops. */
function watchFile(directory: string, name: string, changed: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  let watcher: FSWatcher | undefined
  try {
    watcher = watch(directory, (_, changedName) => {
      if (changedName !== name) return
      clearTimeout(timer)
      timer = setTimeout(changed, settleMs)
    })
    // The directory may be deleted with its node.
    watcher.on('error', () => watcher?.close())
  } catch {}
  return () => {
    clearTimeout(timer)
    watcher?.close()
  }
}
