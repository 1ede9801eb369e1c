import { DurableObject } from 'cloudflare:workers'
import { fleetMembers } from '../../src/gateway/fleet-members.ts'
import type { RouteCounts } from '../../src/http/request-metrics.ts'
import type { Upgrade } from '../../src/http/socket.ts'
import type { TokenRecord } from '../../src/model/access-token.ts'
import { type Compute, type ComputeRecord, tunnelled } from '../../src/model/compute.ts'
import { joinPath } from '../../src/routes/v2/join.ts'
import type { Env } from './env.ts'
import { type Gateway, openGateway } from './gateway.ts'
import { LastingSockets } from './lasting-sockets.ts'
import { Rounds } from './rounds.ts'
import { upgrade } from './sockets.ts'

/** The computes that have an address: with their secrets, and as they are shown. */
export interface Snapshot {
  /** Another one when a compute came, went, was changed, or is connected or not. */
  readonly revision: string
  readonly records: ComputeRecord[]
  readonly shown: Compute[]
}

/** As long as a ticket for a websocket lives, ms: it is in memory only. */
const awakeMs = 30_000

/**
 * The one object that has the state of the gateway, and the connections that computes keep open. What it must not forget is in
 * its tables: its memory goes whenever nothing happens.
 */
export class FleetObject extends DurableObject<Env> {
  readonly #sockets: LastingSockets
  #gateway: (Gateway & { readonly rounds: Rounds }) | undefined
  #awake: ReturnType<typeof setTimeout> | null = null
  /** Of the snapshot; undefined: another one is to be made up. */
  #revision: string | undefined

  constructor(state: DurableObjectState, env: Env) {
    super(state, env)
    this.#sockets = new LastingSockets(state)
    void state.blockConcurrencyWhile(async () => {
      const gateway = await openGateway(env, state.storage.sql, this.#upgrade)
      this.#gateway = { ...gateway, rounds: new Rounds(state.storage, gateway.fleet) }
      fleetMembers(gateway.fleet).watch(() => {
        this.#revision = undefined
      })
      this.#sockets.resume(gateway.fleet.tunnels)
    })
  }

  override async fetch(request: Request): Promise<Response> {
    const { app, rounds } = this.#open
    clearTimeout(this.#awake)
    this.#awake = setTimeout(() => {}, awakeMs)
    await rounds.used()
    if (isAboutAll(request)) await rounds.known()
    return app.fetch(request)
  }

  /**
   * What isolates need to ask computes themselves; undefined: it is still what they have by the revision `known`. `answered`:
   * requests that they have answered since they told that last.
   */
  async snapshot(known?: string, answered: readonly RouteCounts[] = []): Promise<Snapshot | undefined> {
    const { fleet, rounds, requests } = this.#open
    requests.add(answered)
    await rounds.used()
    if (known !== undefined && known === this.#revision) return undefined
    this.#revision ??= crypto.randomUUID()
    const revision = this.#revision
    const shown = (await fleet.list()).filter(({ protocol }) => protocol !== tunnelled)
    return { revision, records: [...fleet.registered().values()], shown }
  }

  /** Somebody could not reach them. */
  async look(computeIds: readonly string[]): Promise<void> {
    const { fleet } = this.#open
    await Promise.all(computeIds.slice(0, 6).map((id) => fleet.check(id)))
  }

  placeOf(projectId: string): Promise<string | undefined> {
    return this.#open.placements.get(projectId)
  }

  place(projectId: string, computeId: string): Promise<void> {
    return this.#open.placements.put(projectId, computeId)
  }

  forget(projectId: string): Promise<void> {
    return this.#open.placements.remove(projectId)
  }

  token(tokenId: string): Promise<TokenRecord | undefined> {
    return this.#open.tokens.get(tokenId)
  }

  override alarm(): Promise<void> {
    return this.#open.rounds.run()
  }

  override webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): void {
    this.#sockets.message(socket, data)
  }

  override webSocketClose(socket: WebSocket, code: number): void {
    this.#sockets.closed(socket, code)
  }

  override webSocketError(socket: WebSocket): void {
    this.#sockets.closed(socket, 1006)
  }

  get #open(): Gateway & { readonly rounds: Rounds } {
    if (this.#gateway === undefined) throw new Error('The object is not open yet')
    return this.#gateway
  }

  /** What computes open outlives this program; all else ends with its requests. */
  readonly #upgrade: Upgrade = (request, on) => {
    const isJoin = new URL(request.url).pathname === joinPath
    return (isJoin ? this.#sockets.upgrade : upgrade)(request, on)
  }
}

/** Whether the answer says which computes are there, or chooses one. */
function isAboutAll({ method, url }: Request): boolean {
  const { pathname } = new URL(url)
  return pathname === '/v2/computes' || (method === 'POST' && pathname.endsWith('/projects'))
}
