import type { KindListener } from '../kind.ts'
import { nvramName } from './configs.ts'
import { type Look, pullConfigs } from './nvram-files.ts'
import type { IouKindNode } from './properties.ts'
import { watchFile } from './watch.ts'

/** Copies what routers store in their NVRAM into their files, while they run and afterwards. Callers hold the lock of the node. */
export class NvramFollower {
  readonly #listener: KindListener
  readonly #written: (key: string) => void
  readonly #watches = new Map<string, () => void>()

  /** `written`: told whose files may be others now. */
  constructor(listener: KindListener, written: (key: string) => void = () => {}) {
    this.#listener = listener
    this.#written = written
  }

  /** From now on what the router writes is seen. `isNew`: it has just been started, and has not written anything. */
  begin(node: IouKindNode, isNew: boolean): void {
    const { key, directory } = node
    const look = (why: Look['why']) =>
      this.#listener.queued(key, async () => {
        // What cannot be read now is looked at again when the router stops.
        if (this.#watches.has(key)) await this.pull(node, { isRunning: true, why }).catch(() => [])
      })
    this.end(key)
    this.#watches.set(
      key,
      watchFile(directory, nvramName(node.record.properties.application_id), () => look('changed')),
    )
    // It ran while no service was there, and may have written something.
    if (!isNew) look('in case')
  }

  end(key: string): void {
    this.#watches.get(key)?.()
    this.#watches.delete(key)
  }

  pull({ key, directory, record }: IouKindNode, look: Look): ReturnType<typeof pullConfigs> {
    return pullConfigs(directory, record.properties.application_id, look).finally(() => this.#written(key))
  }

  /** The same where nobody asked for it in particular: what should be known is told. */
  async pullQuietly(node: IouKindNode, look: Look): Promise<void> {
    const tell = (message: string) =>
      this.#listener.happened(node.key, { type: 'log.warning', message: `${node.record.name}: ${message}` })
    try {
      const doubtful = await this.pull(node, look)
      for (const name of doubtful) tell(`the NVRAM has another checksum than expected; ${name} is kept as ${name}.bak`)
    } catch (error) {
      tell(`its configuration could not be read from the NVRAM: ${(error as Error).message}`)
    }
  }
}
