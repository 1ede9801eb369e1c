import { ignore } from '../async/ignore.ts'
import { SerialQueue } from '../async/serial-queue.ts'
import { originOf } from '../client/address.ts'
import { ComputeRefused, greetCompute } from '../client/greeting.ts'
import type { OpenSocket, Outgoing } from '../client/transport.ts'
import { conflict } from '../errors/api-error.ts'
import type { Socket } from '../http/socket.ts'
import {
  type Compute,
  type ComputeCreate,
  type ComputeRecord,
  type ComputeUpdate,
  tunnelled,
} from '../model/compute.ts'
import type { MetricFamily } from '../model/metrics.ts'
import type { ComputeHello } from '../model/tunnel.ts'
import { Computes, computeKey, isReserved } from './computes.ts'
import { HealthCheck } from './health-check.ts'
import type { JoinGrant, JoinTokens } from './join-tokens.ts'
import { LocalCompute } from './local-compute.ts'
import type { FleetEvent, FleetOptions } from './options.ts'
import { changedRecord, computeRecordOf, isOnlyShare, joinedRecord } from './record.ts'
import type { Registry } from './registry.ts'
import { RemoteCompute, type RemoteComputeOptions, senderOf } from './remote-compute.ts'
import { stateMetrics } from './states.ts'
import { defaultFleetTimeouts } from './timeouts.ts'
import { notJoined, Tunnels } from './tunnels.ts'

/** Attempts after a start are spread over so much time a compute, ms, and no more than this in all. */
const spreadMs = 20
const maxSpreadMs = 10_000

export type { FleetEvent, FleetOptions } from './options.ts'

/** The computes that this service knows: registered, connected, and spoken to. Ids are compared without regard to case. */
export class Fleet {
  /** Of computes that have joined. */
  readonly tunnels: Tunnels
  readonly joinTokens: JoinTokens | undefined
  readonly #registry: Registry
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
    upkeep = true,
    ...joining
  }: FleetOptions) {
    this.#registry = registry
    this.joinTokens = joining.joinTokens
    this.tunnels = new Tunnels({
      ...joining.tunnels,
      version,
      enlist: (hello, grant) => this.#writing.run(() => this.#enlist(hello, grant)),
      isGood: async (token) => (await this.joinTokens?.grantOf(token)) !== undefined,
      joined: (id) => this.#computes.get(id)?.rejoin(),
      left: (id, reason) => this.#computes.get(id)?.rejoin(reason),
    })
    this.#computes = new Computes(local && new LocalCompute(local))
    this.#remote = {
      transport: (address) => (address.protocol === tunnelled ? this.tunnels.transport : transport)(address),
      sockets: (address) => (address.protocol === tunnelled ? this.tunnels.sockets : sockets)?.(address),
      version,
      timeouts: { ...defaultFleetTimeouts, ...timeouts },
      upkeep,
      changed: (compute) => this.#tell('compute.updated', compute),
      warn: (message) => this.warn(message),
    }
  }

  /** The fleet of a registry; its computes are being connected when this resolves. */
  static async open(options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(options)
    const records = await options.registry.load()
    const spread = Math.min(records.length * spreadMs, maxSpreadMs)
    for (const record of records) {
      const compute = new RemoteCompute(record, fleet.#remote, fleet.#waiting(record))
      fleet.#computes.add(compute)
      if (options.upkeep !== 'rounds') compute.start(Math.random() * spread)
    }
    return fleet
  }

  /** `local` first, then in the order of their registration. */
  async list(): Promise<Compute[]> {
    const { local, remote } = this.#computes
    const shown = remote.map((compute) => compute.show())
    return local === undefined ? shown : [await local.show(), ...shown]
  }

  async get(id: string): Promise<Compute> {
    return this.#computes.find(id).show()
  }

  /**
   * Registers a compute after an attempt to connect to it. One that nothing answers for is registered, too; one that is
   * something else is not (409). For an id that is known the compute is given back as it is, after an attempt.
   */
  async create(input: ComputeCreate): Promise<Compute> {
    const record = computeRecordOf(input)
    if (isReserved(record.compute_id)) {
      throw conflict(`compute_id: ${record.compute_id} is reserved, choose another one`)
    }
    const known = this.#computes.get(record.compute_id)
    if (known !== undefined) {
      await known.connect().catch(ignore('the compute that is shown has its last_error'))
      return known.show()
    }
    this.#requireRoom(record)
    const compute = new RemoteCompute(record, this.#remote)
    try {
      await compute.connect().catch((error: Error) => {
        if (error instanceof ComputeRefused)
          throw conflict(`The compute ${compute.name} was not registered: ${error.message}`, {
            word: 'compute-refuses',
          })
      })
      return await this.#writing.run(() => this.#add(compute))
    } catch (error) {
      compute.close()
      throw error
    }
  }

  /** Ends the session and begins a new one, unless only its share of the labs is another. 404, 409 for a reserved compute. */
  update(id: string, changes: ComputeUpdate): Promise<Compute> {
    return this.#writing.run(async () => {
      const compute = this.#computes.find(id)
      if (compute instanceof LocalCompute || isReserved(id)) throw ownBusiness(id)
      const record = changedRecord(compute.record, changes)
      await this.#registry.save(record)
      if (isOnlyShare(changes)) compute.keep(record)
      else compute.change(record, this.#waiting(record))
      this.#tell('compute.updated', compute)
      return compute.show()
    })
  }

  /** Nothing is done for an id that is not known; 409 for a reserved compute that is there. */
  remove(id: string): Promise<void> {
    return this.#writing.run(async () => {
      const compute = this.#computes.get(id)
      if (this.#computes.has(id) && isReserved(id)) throw ownBusiness(id)
      if (compute === undefined) return
      await this.#registry.remove(compute.record.compute_id)
      this.#take(compute)
    })
  }

  /**
   * Adds or changes a compute of the service's own, such as `vm`: it is never saved. `waiting` says why it cannot be connected
   * yet, such as "is starting".
   */
  enrol(record: ComputeRecord, waiting?: string): void {
    const known = this.#computes.get(record.compute_id)
    const compute = known ?? new RemoteCompute(record, this.#remote, waiting)
    this.#computes.add(compute)
    if (known === undefined) compute.start()
    else known.change(record, waiting)
    this.#tell(known === undefined ? 'compute.created' : 'compute.updated', compute)
  }

  /**
   * Looks at all computes, as far as there is time (see `Looks`), or at one: whether it is there, and how busy it is. For a
   * fleet whose upkeep are `rounds`; never rejects.
   */
  async check(id?: string): Promise<void> {
    const found = id === undefined ? this.#computes.remote : [this.#computes.get(id)]
    const there = found.filter((compute) => compute !== undefined)
    await this.#looks.all(there, this.#remote.timeouts)
  }

  /**
   * What `list` gave to a program that has ended since; `ageMs`: how long ago. Of what is elsewhere now nothing is known, nor of
   * what was found more than `mostMs` ago, unless it has joined: then its tunnel is there still.
   */
  recall(found: readonly Compute[], ageMs: number, maxMs = Number.POSITIVE_INFINITY): void {
    for (const one of found) {
      const compute = this.#computes.get(one.compute_id)
      const now = compute?.record
      const isThere = now?.protocol === one.protocol && now.host === one.host && now.port === one.port
      if (!isThere || now.user !== one.user) continue
      const isKnown = now.protocol === tunnelled ? one.connected && this.tunnels.has(one.compute_id) : ageMs <= maxMs
      if (isKnown) compute?.recall(one, ageMs)
    }
  }

  /** Whether it is worth an attempt to ask a compute that is not connected: it was not asked yet, or not for some time. */
  isUnclear(id: string): boolean {
    const found = this.#computes.get(id)
    return this.#remote.upkeep === 'rounds' && found !== undefined && found.isUnclear
  }

  /** Connects a compute now; see `Session.connect`. 404 for an unknown id. */
  async connect(id: string): Promise<void> {
    const found = this.#computes.find(id)
    if (found instanceof RemoteCompute) await found.connect()
  }

  /** Whether a compute answers there that can be used; see `greet`. */
  async probe(record: ComputeRecord, signal: AbortSignal): Promise<void> {
    await greetCompute(senderOf(this.#remote.transport, record), this.#remote.version, signal)
  }

  /** What was registered with an address, by the name it is shown with; secrets included. */
  registered(): ReadonlyMap<string, ComputeRecord> {
    return this.#computes.registered()
  }

  /** Takes away what was enrolled. */
  dismiss(id: string): void {
    const compute = this.#computes.get(id)
    if (compute !== undefined) this.#take(compute)
  }

  /** Whether the service runs nodes itself, as the compute `local`. A gateway does not. */
  get hasLocal(): boolean {
    return this.#computes.local !== undefined
  }

  /** The name by which messages call it. */
  nameOf(id: string): string {
    return this.#computes.find(id).name
  }

  /** Where the compute itself can be asked; it is not asked now. Undefined for one that has joined. */
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
  async send(id: string, request: Outgoing): Promise<Response> {
    return this.#computes.find(id).send(request)
  }

  /** See `FleetOptions.upkeep`. */
  get hasUpkeep(): boolean {
    return this.#remote.upkeep === true
  }

  /** Tells whoever listens of something that may need a person. */
  warn(message: string): void {
    this.#emit({ type: 'log.warning', message })
  }

  /** Tells the readers of the feed of a failure of the service, which has logged it. */
  tellFailure(message: string): void {
    this.#emit({ type: 'log.error', message })
  }

  /** See `RemoteCompute.openSocket`; 404 for an unknown id, 409 for the service itself: it has its consoles without one. */
  async openSocket(id: string, request: Parameters<OpenSocket>[0]): Promise<Socket | Response> {
    const found = this.#computes.find(id)
    if (found instanceof RemoteCompute) return found.openSocket(request)
    throw conflict(
      `Upgrade: the compute ${found.name} is this service: open the websocket at ${this.originOf(id) ?? ''}${request.path}`,
    )
  }

  /** Tells what happens from now on; the result ends that. */
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

  /** Ends everything that is under way. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#listeners.clear()
    await this.#writing.idle()
    this.tunnels.close()
    for (const compute of this.#computes.remote) compute.close()
    this.#computes.clear()
  }

  /** The attempt to connect took its time: others may have come meanwhile. */
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
    this.#tell('compute.created', compute)
    return compute.show()
  }

  /** Registers a compute that joins, unless it is known; its token belongs to it from then on. */
  async #enlist(hello: ComputeHello, grant: JoinGrant): Promise<void> {
    if (isReserved(hello.compute_id)) throw conflict(`compute_id: ${hello.compute_id} is reserved`)
    const known = this.#computes.get(hello.compute_id)
    if (known !== undefined && known.record.protocol !== tunnelled) {
      throw conflict(`There is a compute ${hello.compute_id} already, which has an address`)
    }
    await this.#claim(hello.compute_id, grant)
    if (known !== undefined) return
    const compute = new RemoteCompute(
      joinedRecord(hello, (name) => this.#computes.isTaken(name)),
      this.#remote,
      notJoined,
    )
    await this.#add(compute)
  }

  /** 409 for a token of another compute, and for one that was never used when the compute has a token of its own. */
  async #claim(id: string, { key }: JoinGrant): Promise<void> {
    const { joinTokens } = this
    const grant = await joinTokens?.grantOf(key)
    if (joinTokens === undefined || grant === undefined) throw conflict('The token was revoked')
    if (grant.compute_id === undefined && (await joinTokens.isOwned(id))) {
      throw conflict(
        `The compute ${id} joins with another token: use that one, or revoke it, or make a token with its compute_id`,
      )
    }
    const owner = grant.compute_id ?? (await joinTokens.bind(key, id))
    if (owner === undefined) throw conflict('The token was revoked')
    if (computeKey(owner) !== computeKey(id))
      throw conflict('The token is for another compute: each compute needs its own')
  }

  /** Why a compute cannot be connected yet. */
  #waiting({ protocol, compute_id }: ComputeRecord): string | undefined {
    return protocol === tunnelled && !this.tunnels.has(compute_id) ? notJoined : undefined
  }

  #requireRoom(record: ComputeRecord): void {
    if (this.#isClosed) throw conflict('The service ends')
    this.#computes.requireRoom(record)
  }

  #take(compute: RemoteCompute): void {
    this.#computes.remove(compute)
    compute.close()
    if (compute.record.protocol === tunnelled) this.tunnels.dismiss(compute.record.compute_id)
    this.#emit({ type: 'compute.deleted', compute: compute.show() })
  }

  /** Nothing is told of a compute that is not, or not yet, registered. */
  #tell(type: 'compute.created' | 'compute.updated', compute: RemoteCompute): void {
    if (!this.#computes.includes(compute)) return
    this.#emit({ type, compute: compute.show() })
  }

  #emit(event: FleetEvent): void {
    for (const listener of this.#listeners) listener(event)
  }
}

const ownBusiness = (id: string) =>
  conflict(`compute_id: ${id} is the service's own; it is changed by the configuration, not here`)
