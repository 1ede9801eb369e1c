import type { SocketTransport, Transport } from '../../../src/compute/remote/transport.ts'
import { computeKey } from '../../../src/fleet/pool/computes.ts'
import type { TunnelHolder } from '../../../src/fleet/pool/tunnels.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { NotJoined, type ObjectTunnels } from '../shared/object-tunnels.ts'
import type { BatchedWrites } from './batched-writes.ts'

/**
 * The tunnels that the directory knows: the objects of computes report them. Where one process runs all objects, the tunnels of an earlier
 * process have ended without a report.
 */
export class TunnelTable implements TunnelHolder {
  readonly #sql: SqlStorage
  readonly #writes: BatchedWrites
  readonly #objects: ObjectTunnels
  readonly #open = new Map<string, { readonly address: string | null }>()
  readonly #process: string
  /** Called when a compute was found to have no tunnel. */
  gone: (id: string) => void = () => {}

  /** `process`: names the process that runs all objects; absent: there is no such process. */
  constructor(sql: SqlStorage, writes: BatchedWrites, objects: ObjectTunnels, process = '') {
    this.#sql = sql
    this.#writes = writes
    this.#objects = objects
    this.#process = process
    sql.exec(
      'CREATE TABLE IF NOT EXISTS tunnels (compute_id TEXT PRIMARY KEY, program TEXT NOT NULL, address TEXT) WITHOUT ROWID',
    )
    sql.exec('DELETE FROM tunnels WHERE program != ?', process)
    for (const { compute_id, address } of sql.exec<{ compute_id: string; address: string | null }>(
      'SELECT compute_id, address FROM tunnels',
    ))
      this.#open.set(compute_id, { address })
  }

  async opened(computeId: string, address: string | null = null): Promise<void> {
    const id = computeKey(computeId)
    this.#open.set(id, { address })
    const write = () =>
      void this.#sql.exec('INSERT OR REPLACE INTO tunnels VALUES (?, ?, ?)', id, this.#process, address)
    await this.#writes.add(keyOf(id), write)
  }

  async closed(computeId: string): Promise<void> {
    const id = computeKey(computeId)
    const write = () => this.#sql.exec('DELETE FROM tunnels WHERE compute_id = ?', id)
    if (this.#open.delete(id)) await this.#writes.add(keyOf(id), write)
  }

  readonly transport: Transport = (address) => this.#noticing(address.compute_id, this.#objects.transport(address))

  readonly sockets: SocketTransport = (address) => this.#noticing(address.compute_id, this.#objects.sockets(address))

  has(id: string): boolean {
    return this.#open.has(computeKey(id))
  }

  addressOf(id: string): string | undefined {
    return this.#open.get(computeKey(id))?.address ?? undefined
  }

  unregister(id: string): void {
    this.closed(id).catch(ignore('the next request to it finds that there is no tunnel'))
  }

  close(): void {}

  #noticing<I, O>(id: string, ask: (request: I) => Promise<O>): (request: I) => Promise<O> {
    return async (request) => {
      const before = this.#open.get(computeKey(id))
      try {
        return await ask(request)
      } catch (error) {
        // A tunnel that opened meanwhile is another one.
        if (error instanceof NotJoined && before !== undefined && this.#open.get(computeKey(id)) === before) {
          this.unregister(id)
          this.gone(id)
        }
        throw error
      }
    }
  }
}

const keyOf = (id: string): string => `tunnel ${id}`
