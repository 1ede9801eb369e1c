import type { SocketTransport, Transport } from '../../src/client/transport.ts'
import { computeKey } from '../../src/fleet/computes.ts'
import type { TunnelHolder } from '../../src/fleet/tunnels.ts'
import { type ComputeAsking, NotJoined } from './compute-asking.ts'

/** Identifies this program: the tunnels of an earlier one may have ended without a word. */
let program: string | undefined

/**
 * What the directory knows of the tunnels: which computes have one, told by their objects. A tunnel that ended with its program was not
 * told of: it is not sure until the compute has answered, and gone when its object says so.
 */
export class TunnelTable implements TunnelHolder {
  readonly #sql: SqlStorage
  readonly #asking: ComputeAsking
  /** The program that was told of each tunnel, and a number for each telling. */
  readonly #open = new Map<string, { readonly program: string; readonly address: string | null }>()
  readonly #program: string
  /** Called when a compute was found to have no tunnel. */
  gone: (id: string) => void = () => {}
  /** Called when a compute was removed. */
  removed: (id: string) => void = () => {}

  constructor(sql: SqlStorage, asking: ComputeAsking) {
    this.#sql = sql
    this.#asking = asking
    program ??= crypto.randomUUID()
    this.#program = program
    sql.exec(
      'CREATE TABLE IF NOT EXISTS tunnels (compute_id TEXT PRIMARY KEY, program TEXT NOT NULL, address TEXT) WITHOUT ROWID',
    )
    for (const row of sql.exec<{ compute_id: string; program: string; address: string | null }>(
      'SELECT * FROM tunnels',
    ))
      this.#open.set(row.compute_id, row)
  }

  opened(id: string, address: string | null = null): void {
    this.#open.set(computeKey(id), { program: this.#program, address })
    this.#sql.exec('INSERT OR REPLACE INTO tunnels VALUES (?, ?, ?)', computeKey(id), this.#program, address)
  }

  closed(id: string): void {
    this.#open.delete(computeKey(id))
    this.#sql.exec('DELETE FROM tunnels WHERE compute_id = ?', computeKey(id))
  }

  readonly transport: Transport = (address) => this.#noticing(address.compute_id, this.#asking.transport(address))

  readonly sockets: SocketTransport = (address) => this.#noticing(address.compute_id, this.#asking.sockets(address))

  has(id: string): boolean {
    return this.#open.has(computeKey(id))
  }

  isSure(id: string): boolean {
    return this.#open.get(computeKey(id))?.program === this.#program
  }

  addressOf(id: string): string | undefined {
    return this.#open.get(computeKey(id))?.address ?? undefined
  }

  dismiss(id: string): void {
    this.closed(id)
    this.removed(id)
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
          this.closed(id)
          this.gone(id)
        }
        throw error
      }
    }
  }
}
