import { originOf } from '../../compute/remote/address.ts'
import { ComputeRefused, greetCompute } from '../../compute/remote/greeting.ts'
import { HealthCheck } from '../../compute/remote/health-check.ts'
import { quietMs, RemoteCompute, type RemoteComputeOptions, senderOf } from '../../compute/remote/remote-compute.ts'
import { defaultFleetTimeouts } from '../../compute/remote/timeouts.ts'
import type { ComputeAnswer, OpenSocket, Outgoing } from '../../compute/remote/transport.ts'
import type { HostAgent } from '../../host-agent.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { SerialQueue } from '../../lib/async/serial-queue.ts'
import { SharedTimer } from '../../lib/async/shared-timer.ts'
import { conflict } from '../../lib/errors/api-error.ts'
import type { Socket } from '../../lib/http/socket.ts'
import {
  type Compute,
  type ComputeCreate,
  type ComputeRecord,
  type ComputeUpdate,
  tunnelled,
} from '../../model/compute.ts'
import type { MetricFamily } from '../../model/metrics.ts'
import type { ComputeHello } from '../../model/tunnel.ts'
import { Computes, isReserved } from './computes.ts'
import { JoinLimit } from './join-limit.ts'
import { claimToken, type JoinGrant, type JoinTokens } from './join-tokens.ts'
import { LocalCompute } from './local-compute.ts'
import type { FleetEvent, FleetOptions } from './options.ts'
import { changedRecord, computeRecordOf, isOnlyShare, joinedRecord } from './record.ts'
import type { ComputeRegistry } from './registry.ts'
import { stateMetrics } from './states.ts'
import { notJoined, type TunnelHolder, Tunnels } from './tunnels.ts'

/** After a start the attempts are spread over this time for each compute, ms, up to a maximum. */
const spreadMs = 20
const maxSpreadMs = 10_000

export type { FleetEvent, FleetOptions } from './options.ts'

/** Registers, connects and queries the computes of this service. Ids are case-insensitive. */
export class Fleet {
  /** Of computes that have joined; without tunnels where another program holds them. */
  readonly tunnels: Tunnels
  readonly #held: TunnelHolder
  readonly joinTokens: JoinTokens | undefined
  /** Of those that join here. */
  readonly joinLimit = new JoinLimit()
  readonly #registry: ComputeRegistry
  readonly #remote: RemoteComputeOptions
  readonly #computes: Computes
  readonly #looks = new HealthCheck()
  readonly #listeners = new Set<(event: FleetEvent) => void>()
  readonly #writing = new SerialQueue()
  #isClosed = false

  private constructor({
    registry,
    transport,
    sockets,
    version,
    local,
    timeouts,
    healthChecks = 'continuous',
    waitUntil,
    ...joining
  }: FleetOptions) {
    this.#registry = registry
    this.joinTokens = joining.joinTokens
    this.tunnels = new Tunnels({
      ...joining.tunnels,
      version,
      registerJoined: (hello, grant) => this.registerJoined(hello, grant),
      isGood: (token) => this.isJoinTokenGood(token),
      joined: (id) => this.joined(id),
      left: (id, reason) => this.left(id, reason),
    })
    this.#held = joining.holder ?? this.tunnels
    this.#computes = new Computes(local && new LocalCompute(local), joining.maxComputes)
    this.#remote = {
      transport: (address) => (address.protocol === tunnelled ? this.#held.transport : transport)(address),
      sockets: (address) => (address.protocol === tunnelled ? this.#held.sockets : sockets)?.(address),
      version,
      timeouts: { ...defaultFleetTimeouts, ...timeouts },
      healthChecks,
      slow: waitUntil && new SharedTimer(quietMs / 2, waitUntil),
      changed: (compute) => this.#emitChange('compute.updated', compute),
      warn: (message) => this.warn(message),
    }
  }

  /** A fleet without the computes of its registry. */
  static empty(options: FleetOptions): Fleet {
    return new Fleet(options)
  }

  /** The fleet of a registry. Resolves when the connections to its computes are started. */
  static async open(options: FleetOptions): Promise<Fleet> {
    const fleet = Fleet.empty(options)
    const records = await options.registry.load()
    const spread = Math.min(records.length * spreadMs, maxSpreadMs)
    for (const record of records) {
      const compute = new RemoteCompute(record, fleet.#remote, fleet.#waiting(record))
      fleet.#computes.add(compute)
      if (options.healthChecks !== 'on-demand') compute.session.start(Math.random() * spread)
    }
    return fleet
  }

  /** `local` first, then in the order of their registration. */
  async list(): Promise<Compute[]> {
    const { local, remote } = this.#computes
    const shown = remote.map((compute) => compute.show())
    return local === undefined ? shown : [await local.show(), ...shown]
  }

  /** The computes on other machines, in the order of their registration. */
  get remote(): RemoteCompute[] {
    return this.#computes.remote
  }

  /** A compute on another machine. */
  find(id: string): RemoteCompute | undefined {
    return this.#computes.get(id)
  }

  async get(id: string): Promise<Compute> {
    return this.#computes.find(id).show()
  }

  /**
   * Registers a compute after an attempt to connect. An unreachable compute is registered, too; an address where another program
   * answers is not (409). A known id returns the unchanged compute, after an attempt.
   */
  async create(input: ComputeCreate): Promise<Compute> {
    const record = computeRecordOf(input)
    if (isReserved(record.compute_id)) {
      throw conflict(`compute_id: ${record.compute_id} is reserved, choose another one`)
    }
    const known = this.#computes.get(record.compute_id)
    if (known !== undefined) {
      await known.connect().catch(ignore('the result shows the failure as last_error'))
      return known.show()
    }
    this.#requireRoom(record)
    const compute = new RemoteCompute(record, this.#remote)
    try {
      await compute.connect().catch((error: Error) => {
        if (error instanceof ComputeRefused)
          throw conflict(`The compute ${compute.name} was not registered: ${error.message}`, {
            code: 'compute-refuses',
          })
      })
      return await this.#writing.run(() => this.#add(compute))
    } catch (error) {
      compute.close()
      throw error
    }
  }

  /** Changes the record, and begins a new session unless only its share of new projects changes. 404; 409 for a reserved compute. */
  update(id: string, changes: ComputeUpdate): Promise<Compute> {
    return this.#writing.run(async () => {
      const compute = this.#computes.find(id)
      if (compute instanceof LocalCompute || isReserved(id)) throw ownBusiness(id)
      const record = changedRecord(compute.record, changes)
      await this.#registry.save(record)
      if (isOnlyShare(changes)) compute.keep(record)
      else compute.change(record, this.#waiting(record))
      this.#emitChange('compute.updated', compute)
      return compute.show()
    })
  }

  /** Does nothing for an unknown id; 409 for a reserved compute. */
  remove(id: string): Promise<void> {
    return this.#writing.run(async () => {
      const compute = this.#computes.get(id)
      if (this.#computes.has(id) && isReserved(id)) throw ownBusiness(id)
      if (compute === undefined) return
      await this.#registry.remove(compute.record.compute_id)
      this.#removeCompute(compute)
    })
  }

  /**
   * Adds or changes a compute of the service itself, such as `vm`, without saving it. `waiting`: why the service cannot connect
   * yet, such as "is starting".
   */
  registerEphemeral(record: ComputeRecord, waiting?: string): void {
    const known = this.#computes.get(record.compute_id)
    const compute = known ?? new RemoteCompute(record, this.#remote, waiting)
    this.#computes.add(compute)
    if (known === undefined) compute.session.start()
    else known.change(record, waiting)
    this.#emitChange(known === undefined ? 'compute.created' : 'compute.updated', compute)
  }

  /**
   * Checks the health and the load of one compute, or of all within the time limit (see `HealthCheck`). For health checks `on-demand`;
   * never rejects.
   */
  async check(id?: string): Promise<void> {
    const found = id === undefined ? this.#computes.remote : [this.#computes.get(id)]
    const there = found.filter((compute) => compute !== undefined)
    await this.#looks.all(there, this.#remote.timeouts)
  }

  /**
   * Restores the states that `list` gave to an earlier process, `ageMs` ago. A compute with another address is unknown, and so is a joined
   * one without a tunnel.
   */
  restoreStates(found: readonly Compute[], ageMs: number): void {
    for (const one of found) {
      const compute = this.#computes.get(one.compute_id)
      const now = compute?.record
      const isThere = now?.protocol === one.protocol && now.host === one.host && now.port === one.port
      if (!isThere || now.user !== one.user) continue
      const isKnown = now.protocol !== tunnelled || (one.connected && this.#held.has(one.compute_id))
      if (isKnown) compute?.restoreState(one, ageMs)
    }
  }

  /** Resolves when the computes that were being registered, changed or removed are. */
  settled(): Promise<void> {
    return this.#writing.idle()
  }

  /** Accepts the state of a compute from the program that connects it (health checks `external`). The result: the compute; undefined for an unknown one. */
  acceptState(found: Compute): RemoteCompute | undefined {
    const compute = this.#computes.get(found.compute_id)
    if (compute === undefined) return undefined
    const before = JSON.stringify(compute.show())
    this.restoreStates([found], 0)
    if (JSON.stringify(compute.show()) !== before) this.#emitChange('compute.updated', compute)
    return compute
  }

  /** Registers a joining compute unless it is known, and binds its token to it. 409 when this is not possible. */
  registerJoined(hello: ComputeHello, grant: JoinGrant): Promise<void> {
    return this.#writing.run(() => this.#registerJoined(hello, grant))
  }

  /** Whether the join token with this key is still valid. */
  async isJoinTokenGood(key: string): Promise<boolean> {
    return (await this.joinTokens?.grantOf(key)) !== undefined
  }

  /** The tunnel of a compute has opened. */
  joined(id: string): void {
    this.#computes.get(id)?.rejoin()
  }

  /** The address from which a compute has joined, as this service sees it. */
  joinedFrom(id: string): string | undefined {
    return this.#held.addressOf(id)
  }

  /** The tunnel of a compute has closed. */
  left(id: string, reason: string): void {
    this.#computes.get(id)?.rejoin(reason)
  }

  /** Whether an attempt to connect may succeed: the last attempt is long ago, or there was none. */
  shouldRetryConnect(id: string): boolean {
    const found = this.#computes.get(id)
    const { healthChecks } = this.#remote
    return (healthChecks === 'on-demand' || healthChecks === 'external') && found?.session.shouldRetryConnect === true
  }

  /** Connects a compute now; see `Session.connect`. 404 for an unknown id. */
  async connect(id: string): Promise<void> {
    const found = this.#computes.find(id)
    if (found instanceof RemoteCompute) await found.connect()
  }

  /** Rejects unless a usable compute answers at the address; see `greet`. */
  async probe(record: ComputeRecord, signal: AbortSignal): Promise<void> {
    await greetCompute(senderOf(this.#remote.transport, record), this.#remote.version, signal)
  }

  /** Records of the computes with an address, by display name; with secrets. */
  registered(): ReadonlyMap<string, ComputeRecord> {
    return this.#computes.registered()
  }

  /** Removes an enrolled compute. */
  unregister(id: string): void {
    const compute = this.#computes.get(id)
    if (compute !== undefined) this.#removeCompute(compute)
  }

  /** Whether the service runs nodes itself, as the compute `local`. A gateway does not. */
  get hasLocal(): boolean {
    return this.#computes.local !== undefined
  }

  /** The agent of the compute `local`. */
  get localAgent(): HostAgent | undefined {
    return this.#computes.local?.agent
  }

  /** A compute, this service as `local` among them; 404 for an unknown id. */
  at(id: string): RemoteCompute | LocalCompute {
    return this.#computes.find(id)
  }

  /** The origin of the URLs of a compute, without a request. Undefined for a compute that has joined. */
  originOf(id: string): string | undefined {
    const found = this.#computes.find(id)
    const address = found instanceof LocalCompute ? found.address : found.record
    return address.protocol === tunnelled ? undefined : originOf(address)
  }

  /** Whether the compute has joined by itself. */
  isTunnelled(id: string): boolean {
    return this.#computes.get(id)?.record.protocol === tunnelled
  }

  /** See `RemoteCompute.send`; 404 for an unknown id. */
  async send(id: string, request: Outgoing): Promise<ComputeAnswer> {
    return this.#computes.find(id).send(request)
  }

  /** See `FleetOptions.healthChecks`. */
  get hasUpkeep(): boolean {
    return this.#remote.healthChecks === 'continuous'
  }

  /** Sends a warning to all listeners. */
  warn(message: string): void {
    this.#emit({ type: 'log.warning', message })
  }

  /** Sends a failure of the service, which is already in the log, to the subscribers of the feed. */
  reportFailure(message: string): void {
    this.#emit({ type: 'log.error', message })
  }

  /** See `RemoteCompute.openSocket`; 404 for an unknown id; 409 for `local`, which needs no websocket. */
  async openSocket(id: string, request: Parameters<OpenSocket>[0]): Promise<Socket | ComputeAnswer> {
    const found = this.#computes.find(id)
    if (found instanceof RemoteCompute) return found.openSocket(request)
    throw conflict(
      `Upgrade: the compute ${found.name} is this service: open the websocket at ${this.originOf(id) ?? ''}${request.path}`,
    )
  }

  /** Subscribes to events; the returned function unsubscribes. */
  listen(listener: (event: FleetEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  metrics(): MetricFamily[] {
    const { local, remote } = this.#computes
    const states = remote.map(({ state }) => state)
    if (local !== undefined) states.push('connected')
    return stateMetrics(states)
  }

  /** Ends all sessions and tunnels. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#listeners.clear()
    await this.#writing.idle()
    this.#held.close()
    for (const compute of this.#computes.remote) compute.close()
    this.#computes.clear()
  }

  /** Checks again for room and for the name: other computes may have been registered during the attempt to connect. */
  async #add(compute: RemoteCompute): Promise<Compute> {
    const { record } = compute
    const other = this.#computes.get(record.compute_id)
    if (other !== undefined) {
      compute.close()
      return other.show()
    }
    this.#requireRoom(record)
    await this.#registry.save(record)
    this.#computes.add(compute)
    this.#emitChange('compute.created', compute)
    return compute.show()
  }

  async #registerJoined(hello: ComputeHello, grant: JoinGrant): Promise<void> {
    if (isReserved(hello.compute_id)) throw conflict(`compute_id: ${hello.compute_id} is reserved`)
    const known = this.#computes.get(hello.compute_id)
    if (known !== undefined && known.record.protocol !== tunnelled) {
      throw conflict(`compute_id: ${hello.compute_id} is already registered, with an address`)
    }
    const record = joinedRecord(hello, (name) => this.#computes.isTaken(name))
    // Before the token is bound: one that is refused for want of room may be given to another compute.
    if (known === undefined) this.#requireRoom(record)
    await claimToken(this.joinTokens, grant.key, hello.compute_id)
    if (known === undefined) await this.#add(new RemoteCompute(record, this.#remote, notJoined))
  }

  /** Why the service cannot connect to a compute yet. */
  #waiting({ protocol, compute_id }: ComputeRecord): string | undefined {
    return protocol === tunnelled && !this.#held.has(compute_id) ? notJoined : undefined
  }

  #requireRoom(record: ComputeRecord): void {
    if (this.#isClosed) throw conflict('The service is shutting down')
    this.#computes.requireRoom(record)
  }

  #removeCompute(compute: RemoteCompute): void {
    this.#computes.remove(compute)
    compute.close()
    if (compute.record.protocol === tunnelled) this.#held.unregister(compute.record.compute_id)
    this.#emit({ type: 'compute.deleted', compute: compute.show() })
  }

  /** No event for a compute that is not registered, or not yet. */
  #emitChange(type: 'compute.created' | 'compute.updated', compute: RemoteCompute): void {
    if (!this.#computes.includes(compute)) return
    this.#emit({ type, compute: compute.show() })
  }

  #emit(event: FleetEvent): void {
    for (const listener of this.#listeners) listener(event)
  }
}

const ownBusiness = (id: string) =>
  conflict(`compute_id: ${id} belongs to the service itself: change it in the configuration`)
