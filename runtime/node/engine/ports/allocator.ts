import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { isTcpFree, isUdpFree } from './bind-test.ts'
import { browserBlocked } from './blocked.ts'

export type Pool = 'console' | 'vnc' | 'udp'
type Range = readonly [first: number, last: number]

export interface AllocatorOptions {
  readonly ranges: Readonly<Record<Pool, Range>>
  /** Address that consoles listen on. */
  readonly consoleHost: string
}

/** The ports of labs on this host with their owners: a project (`{project_id}`) or a node (`{project_id}/{key}`). */
export class PortAllocator {
  readonly #options: AllocatorOptions
  readonly #tcp = new Map<number, string>()
  readonly #udp = new Map<number, string>()
  /** The port at which the next search of a pool begins. */
  readonly #next = new Map<Pool, number>()

  /** Address of consoles. */
  get consoleHost(): string {
    return this.#options.consoleHost
  }

  constructor(options: AllocatorOptions) {
    this.#options = options
  }

  range(pool: Pool): Range {
    return this.#options.ranges[pool]
  }

  /** The ports of a pool that are in use, ascending. */
  used(pool: Pool): number[] {
    const [first, last] = this.range(pool)
    return [...this.#owners(pool).keys()].filter((port) => port >= first && port <= last).sort((a, b) => a - b)
  }

  /** Number of ports that a pool can allocate, used or not. */
  size(pool: Pool): number {
    const [first, last] = this.range(pool)
    const isInRange = (port: number) => port >= first && port <= last
    return last - first + 1 - (pool === 'udp' ? 0 : [...browserBlocked].filter(isInRange).length)
  }

  /** Allocates a free port, if possible `wanted`. 409 when the range is used up. */
  async allocate(pool: Pool, owner: string, wanted?: number): Promise<number> {
    return this.allocateWith(pool, owner, [], wanted)
  }

  /** The same for a program that also binds the ports at the distances `beside` above it. */
  async allocateWith(pool: Pool, owner: string, beside: readonly number[], wanted?: number): Promise<number> {
    if (wanted !== undefined && (await this.#takeWith(pool, owner, wanted, beside))) return wanted
    const [first, last] = this.range(pool)
    const size = last - first + 1
    for (let tried = 0; tried < size; tried++) {
      // The cursor moves before anything is awaited, so that two searches never look at the same port.
      const port = this.#next.get(pool) ?? first
      this.#next.set(pool, port >= last ? first : port + 1)
      if (await this.#takeWith(pool, owner, port, beside)) return port
    }
    throw conflict(
      `No ${pool} port from ${first} to ${last} is free; delete nodes or links, or widen ${pool}_port_range`,
      { code: 'no-port-left' },
    )
  }

  /** Takes the ports beside a port of the owner: all of them, or (false) none. */
  async takeBeside(pool: Pool, owner: string, port: number, beside: readonly number[]): Promise<boolean> {
    for (const distance of beside) {
      const isTaken = this.#owners(pool).get(port + distance) === besideOf(owner)
      if (isTaken || (await this.#tryReserve(pool, besideOf(owner), port + distance))) continue
      this.releaseBeside(pool, owner, port, beside)
      return false
    }
    return true
  }

  releaseBeside(pool: Pool, owner: string, port: number, beside: readonly number[]): void {
    for (const distance of beside) this.release(pool, port + distance, besideOf(owner))
  }

  /** Takes a certain port of a pool. 409 with the reason when it is not available. */
  async reserve(pool: Pool, owner: string, port: number): Promise<void> {
    const isTaken = async () => !(await this.#tryReserve(pool, owner, port))
    const inUse = `port ${port} is in use by another program`
    const refusal = this.refusal(pool, owner, port) ?? ((await isTaken()) ? inUse : undefined)
    if (refusal !== undefined)
      throw conflict(`${pool === 'udp' ? 'udp_port' : 'console'}: ${refusal}`, { code: 'port-taken' })
  }

  /** Why a port of a pool cannot be allocated; does not test whether another program has it. */
  refusal(pool: Pool, owner: string, port: number): string | undefined {
    const [first, last] = this.range(pool)
    if (port < first || port > last) return `port ${port} is outside ${pool}_port_range, ${first} to ${last}`
    const holder = this.#owners(pool).get(port)
    if (holder !== undefined) return `port ${port} is in use by ${holder === owner ? 'this' : 'another'} node or link`
    if (pool !== 'udp' && browserBlocked.has(port)) return `browsers do not connect to port ${port}`
    return undefined
  }

  /** Makes a UDP port the `lport` of a link. The port must be free, or reserved by the same project; otherwise 409. */
  claimUdp(port: number, owner: string): void {
    const holder = this.#udp.get(port)
    const isOurReservation = holder !== undefined && owner.startsWith(`${holder}/`)
    const inUse = `lport: UDP port ${port} is in use by another link or node; POST .../ports/udp reserves a free one`
    if (holder !== undefined && holder !== owner && !isOurReservation) throw conflict(inUse, { code: 'port-taken' })
    this.#udp.set(port, owner)
  }

  ownerOfUdp(port: number): string | undefined {
    return this.#udp.get(port)
  }

  release(pool: Pool, port: number, owner: string): void {
    const owners = this.#owners(pool)
    if (owners.get(port) === owner) owners.delete(port)
  }

  /** Releases all ports of the owner, and of owners below it. */
  releaseAll(owner: string): void {
    for (const owners of [this.#tcp, this.#udp])
      for (const [port, holder] of owners) if (holder === owner || holder.startsWith(`${owner}/`)) owners.delete(port)
  }

  /** Takes a port that a running node has bound, without a test. False when another node has it in this table. */
  adopt(pool: Pool, port: number, owner: string, beside: readonly number[] = []): boolean {
    const owners = this.#owners(pool)
    const holder = owners.get(port)
    // A bound port wins over a port that is only kept free beside another one.
    if (holder !== undefined && holder !== owner && !isBeside(holder)) return false
    owners.set(port, owner)
    for (const distance of beside) if (!owners.has(port + distance)) owners.set(port + distance, besideOf(owner))
    return true
  }

  async #takeWith(pool: Pool, owner: string, port: number, beside: readonly number[]): Promise<boolean> {
    if (!(await this.#tryReserve(pool, owner, port))) return false
    if (await this.takeBeside(pool, owner, port, beside)) return true
    this.release(pool, port, owner)
    return false
  }

  async #tryReserve(pool: Pool, owner: string, port: number): Promise<boolean> {
    const [first, last] = this.range(pool)
    const owners = this.#owners(pool)
    if (port < first || port > last || owners.has(port)) return false
    if (pool !== 'udp' && browserBlocked.has(port)) return false
    // Recorded before the test, so that a simultaneous search skips the port.
    owners.set(port, owner)
    let isFree = false
    try {
      isFree = pool === 'udp' ? await isUdpFree(port) : await isTcpFree(port, this.#options.consoleHost)
    } finally {
      if (!isFree && owners.get(port) === owner) owners.delete(port)
    }
    return isFree
  }

  #owners(pool: Pool): Map<number, string> {
    return pool === 'udp' ? this.#udp : this.#tcp
  }
}

/** The owner of the ports beside. It is below the owner, so `releaseAll` releases it, and it differs from the owners of links. */
const besideOf = (owner: string): string => `${owner}/beside`
const isBeside = (owner: string): boolean => owner.endsWith('/beside')
