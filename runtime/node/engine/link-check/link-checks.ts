import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isForbidden, isOwnAddress } from '../../../../src/compute/remote/address.ts'
import type { LinkCheckAgent } from '../../../../src/host-agent.ts'
import { ApiError, conflict, notFound } from '../../../../src/lib/errors/api-error.ts'
import {
  type LinkCandidates,
  type LinkCheck,
  type LinkCheckResult,
  maxToldAddresses,
  type UdpAddress,
} from '../../../../src/model/link-check.ts'
import { isSpecialInterface } from '../../os/system/interfaces.ts'
import { bootId } from '../../os/system/process-identity.ts'
import { resolveHost } from '../nodes/resolve-host.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import { Attempt } from './attempt.ts'

/** Attempts at the same time. With the limits of one they bound what this host can be made to send. */
const maxAttempts = 32

export interface LinkChecksOptions {
  readonly ports: Pick<PortAllocator, 'ownerOfUdp'>
  /** The setting join.addresses. */
  readonly addresses: () => readonly string[]
}

/** Finds out by which addresses this compute and another one reach each other by UDP. */
export class LinkChecks implements LinkCheckAgent {
  readonly #options: LinkChecksOptions
  /** Ports with an attempt. */
  readonly #running = new Set<number>()

  constructor(options: LinkChecksOptions) {
    this.#options = options
  }

  async candidates(projectId: string, port: number): Promise<LinkCandidates> {
    this.#requireReserved(projectId, port)
    const configured = this.#options.addresses()
    const own = interfaceAddresses().slice(0, Math.max(0, maxToldAddresses - configured.length))
    // A way within the network is better than one by way of a router.
    return { addresses: [...new Set([...own, ...configured])], boot_id: bootId() ?? null }
  }

  async run(projectId: string, port: number, check: LinkCheck, signal: AbortSignal): Promise<LinkCheckResult> {
    this.#requireReserved(projectId, port)
    if (this.#running.has(port)) throw conflict(`udp_port: port ${port} is already being checked`)
    if (this.#running.size >= maxAttempts)
      throw new ApiError(503, `${maxAttempts} UDP ports are being checked; try again later`, {
        headers: { 'Retry-After': '5' },
      })
    this.#running.add(port)
    try {
      const isSameHost = check.boot_id != null && check.boot_id === bootId()
      const found = await Promise.all(check.candidates.map((candidate) => numeric(candidate, isSameHost)))
      const candidates = new Map(
        found.flatMap((it) => ('address' in it ? [[`${it.address} ${it.port}`, it] as const] : [])),
      )
      const refused = found.flatMap((it) => ('outcome' in it ? [it] : []))
      if (candidates.size === 0) return { paths: [], tried: refused }
      const key = Buffer.from(check.key, 'hex')
      const { paths, tried } = await Attempt.run({
        port,
        end: check.end,
        key,
        signal,
        candidates: [...candidates.values()],
      })
      return { paths, tried: [...tried, ...refused] }
    } finally {
      this.#running.delete(port)
    }
  }

  #requireReserved(projectId: string, port: number): void {
    if (this.#options.ports.ownerOfUdp(port) !== projectId)
      throw notFound(`udp_port: ${port} is not reserved for the project; POST .../ports/udp reserves one`)
  }
}

/** The numeric form of a candidate, or why it is not probed. */
async function numeric(
  { host, port }: LinkCheck['candidates'][number],
  isSameHost: boolean,
): Promise<UdpAddress | LinkCheckResult['tried'][number]> {
  const refused = (reason: string) => ({ host, port, outcome: 'failed' as const, reason })
  try {
    const address = canonical(await resolveHost(host))
    if (isForbidden(address)) return refused('no compute can have this address')
    if (isOwnAddress(address) && !isSameHost) return refused('the compute is not on this host')
    return { address, port }
  } catch (error) {
    return refused((error as Error).message)
  }
}

/** As received datagrams name it: IPv6 in its short form (RFC 5952). */
const canonical = (address: string): string =>
  isIP(address) === 6 ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address

/** The addresses of this host that another one may reach, the likeliest first: IPv4, and not of bridges of container engines. */
function interfaceAddresses(): string[] {
  const all = Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ internal, address }) => !internal && !isForbidden(address))
      .map(({ address, family }) => ({
        address,
        rank: (isSpecialInterface(name) ? 2 : 0) + (family === 'IPv4' ? 0 : 1),
      })),
  )
  return all.sort((a, b) => a.rank - b.rank).map(({ address }) => address)
}
