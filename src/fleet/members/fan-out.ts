import type { HostAgent } from '../../host-agent.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { withTimeout } from '../../lib/async/timeout.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import { atCompute, noCompute, retryAfter } from './member-errors.ts'
import type { FleetMembers, Member } from './members.ts'
import type { RequestingCaller } from './requesting-caller.ts'

/** Timeouts of one compute and of all computes together, ms. */
interface FanOutTimeouts {
  readonly eachMs: number
  readonly allMs: number
}

const defaultTimeouts: FanOutTimeouts = { eachMs: 10_000, allMs: 20_000 }
/** How long a silent compute holds up the question to others, ms. */
export const silentMs = 1000
/** For answers that take a compute long, such as the checksums of new images. */
export const longTimeouts: FanOutTimeouts = { eachMs: 120_000, allMs: 240_000 }

/** The answer of one compute. */
export interface MemberReply<T> {
  readonly member: Member
  readonly value: T
}

interface FirstOptions<T> {
  readonly lacks: (error: ApiError) => boolean
  readonly discard: (answer: T) => void
  readonly order?: (members: readonly Member[]) => Promise<readonly Member[]>
}

/** Questions to all computes of a gateway. */
export class FanOut {
  readonly #members: FleetMembers
  readonly #caller: RequestingCaller

  constructor(members: FleetMembers, caller: RequestingCaller) {
    this.#members = members
    this.#caller = caller
  }

  /**
   * The answers of all computes, in the order of registration. A compute that cannot be reached, or is late, or fails, is left out,
   * and its name is reported. When no compute answers, rejects with the first failure of a connected compute.
   */
  async ask<T>(question: (agent: HostAgent) => Promise<T>, timeouts = defaultTimeouts): Promise<MemberReply<T>[]> {
    const members = await this.#members.all()
    const until = Date.now() + timeouts.allMs
    let failure: unknown
    const replyOf = async (member: Member) => {
      try {
        const leftMs = Math.min(timeouts.eachMs, until - Date.now())
        if (member.isConnected)
          return { member, value: await within(() => question(this.agentOf(member)), member, leftMs) }
      } catch (error) {
        failure ??= error
      }
      this.#caller.noteUnreachable(member.name)
      return undefined
    }
    const replies = await mapLimit(members, replyOf, undefined, silentMs)
    const received = replies.filter((it) => it !== undefined)
    if (received.length === 0 && failure !== undefined) throw failure
    return received
  }

  /** The items of all computes. Of items with the same key the first counts. */
  async union<T>(
    question: (agent: HostAgent) => Promise<readonly T[]>,
    key: (item: T) => string,
    timeouts = defaultTimeouts,
  ): Promise<T[]> {
    const found = new Map<string, T>()
    for (const { value } of await this.ask(question, timeouts)) {
      for (const item of value) if (!found.has(key(item))) found.set(key(item), item)
    }
    return [...found.values()]
  }

  /**
   * The first answer without an error. `lacks`: whether an error means that the compute does not have the resource. When all fail: the error
   * of a compute that has the resource, else of a compute that was lost, else of one that does not have it; 503 when none is connected.
   * `discard` gets late answers: when a compute is silent the next one is asked, too. `order`: in which the computes are asked; default: that of
   * their registration.
   */
  async first<T>(question: (agent: HostAgent) => Promise<T>, { lacks, discard, order }: FirstOptions<T>): Promise<T> {
    const all = await this.#members.all()
    const members = (await order?.(all)) ?? all
    const failures: { error: ApiError; rank: number }[] = []
    const failure = () => failures.toSorted((a, b) => a.rank - b.rank)[0]?.error ?? noCompute()
    return new Promise((resolve, reject) => {
      let isOver = false
      const askOne = async (member: Member): Promise<void> => {
        if (isOver) return
        if (!member.isConnected) return this.#caller.noteUnreachable(member.name)
        try {
          const answer = await question(this.agentOf(member))
          if (isOver) return discard(answer)
          isOver = true
          this.noteCompute(member)
          resolve(answer)
        } catch (error) {
          if (!(error instanceof ApiError)) throw error
          if (isUnreachable(error)) this.#caller.noteUnreachable(member.name)
          const rank = lacks(error) ? 2 : isUnreachable(error) ? 1 : 0
          failures.push({ error, rank })
        }
      }
      mapLimit(members, askOne, 1, silentMs).then(() => reject(failure()), reject)
    })
  }

  /** The agent of a compute for the caller. */
  agentOf(member: Member): HostAgent {
    return member.agentFor(this.#caller.caller)
  }

  /** The answer to the client is that of this compute. */
  noteCompute({ id }: Member): void {
    this.#caller.noteCompute(id)
  }

  /** The connected computes. The names of the others are reported. */
  async present(): Promise<Member[]> {
    const members = await this.#members.all()
    for (const { isConnected, name } of members) if (!isConnected) this.#caller.noteUnreachable(name)
    return members.filter(({ isConnected }) => isConnected)
  }

  /**
   * Runs work at all connected computes, or at those that are given; the names of the others are reported. After the last has ended, rejects
   * with the first failure, which names its compute.
   */
  async order<T>(
    work: (agent: HostAgent, member: Member) => Promise<T>,
    given?: readonly Member[],
  ): Promise<MemberReply<T>[]> {
    const members = given ?? (await this.present())
    if (members.length === 0) throw noCompute()
    const replies: MemberReply<T>[] = []
    let failure: unknown
    await mapLimit(members, async (member) => {
      try {
        replies.push({ member, value: await work(this.agentOf(member), member) })
      } catch (error) {
        failure ??= members.length > 1 ? atCompute(error, member) : error
      }
    })
    if (failure !== undefined) throw failure
    return replies
  }
}

/** The compute was lost before its answer. */
const isUnreachable = ({ status }: ApiError): boolean => [502, 503, 504].includes(status)

async function within<T>(ask: () => Promise<T>, { name }: Member, left: number): Promise<T> {
  const error = () => new ApiError(504, `The compute ${name} did not answer in time`, { headers: retryAfter })
  if (left <= 0) throw error()
  return withTimeout(ask(), left, () => {
    throw error()
  })
}
