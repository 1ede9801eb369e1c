import { Check } from '@sinclair/typebox/value'
import { connectHost, isForbidden, isLoopbackHost, isOwnAddress } from '../../compute/remote/address.ts'
import { quoteText } from '../../compute/remote/answer.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { ApiError, conflict } from '../../lib/errors/api-error.ts'
import type { Revert } from '../../lib/revert.ts'
import { type Compute, tunnelled } from '../../model/compute.ts'
import {
  firstProbedPort,
  IpAddress,
  type LinkCandidates,
  type LinkCheck,
  type LinkCheckResult,
  maxCandidates,
  type UdpAddress,
} from '../../model/link-check.ts'
import { fleetAgent } from '../members/fleet-agent.ts'
import type { Fleet } from '../pool/fleet.ts'

/** A UDP port that a project has reserved at a compute. */
export interface ReservedPort {
  readonly compute_id: string
  readonly project_id: string
  readonly udp_port: number
}

/**
 * Reserves a port for each end of a link, which `revert` releases. Computes on one host may offer the same port, as neither has bound it
 * yet: the second compute is asked for another one then, and what it offered is released.
 */
export async function reserveApart<Port extends Pick<ReservedPort, 'udp_port'>>(
  [reserveFirst, reserveSecond]: readonly [() => Promise<Port>, () => Promise<Port>],
  release: (port: Port) => Promise<void>,
  revert: Revert,
): Promise<readonly [Port, Port]> {
  const first = await reserveFirst()
  revert.add(() => release(first))
  let second = await reserveSecond()
  if (second.udp_port === first.udp_port) {
    const offered = second
    try {
      // Before the release: the compute would offer the same port again.
      second = await reserveSecond()
    } finally {
      await release(offered).catch(ignore('a port that stays reserved goes with the project'))
    }
  }
  revert.add(() => release(second))
  return [first, second]
}

interface Party extends ReservedPort {
  readonly compute: Compute
}
type Parties = readonly [Party, Party]

const keyBytes = 32
const loopback = '127.0.0.1'

/**
 * Lets two computes find out how their reserved ports reach each other. The result: for each the address and port to send to. 409, with what
 * each has tried, when they do not reach each other. An address that a compute reports of itself is only a candidate: it is used when the
 * other compute has got an answer from it, so that no compute can direct the frames of another one to a third host.
 */
export async function checkedAddresses(
  fleet: Fleet,
  parties: Parties,
  toDo: string,
): Promise<readonly [UdpAddress, UdpAddress]> {
  const [a, b] = parties
  const [ofA, ofB] = await Promise.all([toldBy(fleet, a, toDo), toldBy(fleet, b, toDo)])
  const isSameHost = ofA.boot_id !== null && ofA.boot_id === ofB.boot_id
  const toA = candidatesFor(fleet, a, ofA, isSameHost)
  const toB = candidatesFor(fleet, b, ofB, isSameHost)
  const unknown = toA.length === 0 ? a : toB.length === 0 ? b : undefined
  if (unknown !== undefined)
    throw conflict(`nodes: no address of the compute ${unknown.compute.name} is known; ${toDo}`)
  const key = hex(crypto.getRandomValues(new Uint8Array(keyBytes)))
  const [found, confirmed] = await Promise.all([
    check(fleet, a, { end: 'a', key, candidates: toB, boot_id: ofB.boot_id }),
    check(fleet, b, { end: 'b', key, candidates: toA, boot_id: ofA.boot_id }),
  ])
  for (const { address, port, seen_as } of found.paths) {
    const other = confirmed.paths.find((it) => isSame(it, seen_as) && isSame(it.seen_as, { address, port }))
    if (other !== undefined)
      return [
        { address, port },
        { address: other.address, port: other.port },
      ]
  }
  throw conflict(
    `nodes: no UDP passes between the computes ${a.compute.name} and ${b.compute.name}: ` +
      `${triedBy(a, found)}; ${triedBy(b, confirmed)}; ${toDo}`,
  )
}

/** The addresses that a compute reports of itself. 409 for an older version, which cannot. */
async function toldBy(fleet: Fleet, party: Party, toDo: string): Promise<LinkCandidates> {
  try {
    return await fleetAgent(fleet, party.compute_id).linkChecks.candidates(party.project_id, party.udp_port)
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 501)) throw error
    const { name } = party.compute
    throw conflict(
      `nodes: no address of the compute ${name} is known to the other, and its version cannot find one: upgrade it, or ${toDo}`,
      { cause: error },
    )
  }
}

/** Candidates for the port of a compute, the likeliest first: its registered address, those that it reports, the one from which it joined. */
function candidatesFor(
  fleet: Fleet,
  { compute, udp_port }: Party,
  { addresses }: LinkCandidates,
  isSameHost: boolean,
): LinkCheck['candidates'] {
  if (udp_port < firstProbedPort) return []
  const observed = fleet.joinedFrom(compute.compute_id)
  const known = [
    ...(compute.protocol === tunnelled ? [] : [connectHost(compute.host)]),
    ...addresses,
    ...(Check(IpAddress, observed) ? [observed] : []),
  ].filter((host) => !isForbidden(host) && !isOwnAddress(host) && !isLoopbackHost(host))
  const hosts = new Set([...(isSameHost ? [loopback] : []), ...known])
  return [...hosts].slice(0, maxCandidates).map((host) => ({ host, port: udp_port }))
}

const check = (fleet: Fleet, { compute_id, project_id, udp_port }: Party, input: LinkCheck): Promise<LinkCheckResult> =>
  fleetAgent(fleet, compute_id).linkChecks.run(project_id, udp_port, input)

const isSame = (a: UdpAddress, b: UdpAddress): boolean => a.address === b.address && a.port === b.port

const outcomes = {
  answered: 'replied, but only one way works',
  heard: 'its probes arrived, but no reply',
  silent: 'no answer',
  failed: 'not sent',
} as const satisfies Record<LinkCheckResult['tried'][number]['outcome'], string>

function triedBy({ compute: { name } }: Party, { tried }: LinkCheckResult): string {
  const all = tried.map(({ host, port, outcome, reason }) => {
    const why = reason === null ? outcomes[outcome] : quoteText(reason)
    return `${host.includes(':') ? `[${host}]` : host}:${port} (${why})`
  })
  return `${name} tried ${all.join(', ')}`
}

const hex = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
