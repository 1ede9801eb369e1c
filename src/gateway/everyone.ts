import { ApiError } from '../errors.ts'
import type { HostAgent } from '../host-agent.ts'
import type { Member, Members } from './members.ts'

/** Computes asked at the same time: a request at the edge may have no more connections under way. */
const mostAtOnce = 6
/** How long a compute may take to tell what it has, ms. */
const patienceMs = 10_000

/** What a compute said. */
export interface Said<T> {
  readonly member: Member
  readonly value: T
}

/** Questions to all computes of a gateway. */
export class Everyone {
  readonly #members: Members
  readonly #absent: (name: string) => void

  /** `absent` is told the name of every compute that was not there to answer. */
  constructor(members: Members, absent: (name: string) => void) {
    this.#members = members
    this.#absent = absent
  }

  /**
   * What each says, in the order of registration. One that cannot be reached, or takes too long, or fails, is left out and its
   * name told. When none says anything it rejects with what the first that is there failed with.
   */
  async ask<T>(question: (agent: HostAgent) => Promise<T>): Promise<Said<T>[]> {
    const members = await this.#members.all()
    const said: (Said<T> | undefined)[] = members.map(() => undefined)
    let failure: unknown
    await eachOf(members, async (member, index) => {
      if (!member.isConnected) return this.#absent(member.name)
      try {
        said[index] = { member, value: await inTime(question(member.agent), member) }
      } catch (error) {
        this.#absent(member.name)
        failure ??= error
      }
    })
    const heard = said.filter((it) => it !== undefined)
    if (heard.length === 0 && failure !== undefined) throw failure
    return heard
  }

  /** All that has them, one after the other; the first compute counts for what has the same key. */
  async union<T>(question: (agent: HostAgent) => Promise<readonly T[]>, key: (item: T) => string): Promise<T[]> {
    const found = new Map<string, T>()
    for (const { value } of await this.ask(question)) {
      for (const item of value) if (!found.has(key(item))) found.set(key(item), item)
    }
    return [...found.values()]
  }

  /** What the first says that can. Rejects as the last one did when none can, with 503 when none is there. */
  async first<T>(question: (agent: HostAgent) => Promise<T>): Promise<T> {
    let failure: unknown
    for (const member of await this.#members.all()) {
      if (!member.isConnected) {
        this.#absent(member.name)
        continue
      }
      try {
        return await question(member.agent)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        failure = error
      }
    }
    throw failure ?? noCompute()
  }

  /**
   * What all that are there are to do; those that are not are told. Rejects with the first failure, when all have ended, and
   * says at which compute.
   */
  async order<T>(work: (agent: HostAgent, member: Member) => Promise<T>): Promise<Said<T>[]> {
    const members = (await this.#members.all()).filter((member) => {
      if (!member.isConnected) this.#absent(member.name)
      return member.isConnected
    })
    if (members.length === 0) throw noCompute()
    const said: Said<T>[] = []
    let failure: unknown
    await eachOf(members, async (member) => {
      try {
        said.push({ member, value: await work(member.agent, member) })
      } catch (error) {
        failure ??= members.length > 1 ? named(error, member) : error
      }
    })
    if (failure !== undefined) throw failure
    return said
  }
}

/** Does something with each, some at a time. */
export async function eachOf<T>(items: readonly T[], work: (item: T, index: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) await work(items[index] as T, index)
  }
  await Promise.all(Array.from({ length: Math.min(mostAtOnce, items.length) }, worker))
}

export const retryAfter = { 'Retry-After': '5' }

export const noCompute = (): ApiError =>
  new ApiError(503, 'No compute is connected: register one, or see the last_error of those that are', {
    headers: retryAfter,
  })

export const absence = ({ name }: Member): ApiError =>
  new ApiError(503, `The compute ${name} is not connected`, { headers: retryAfter })

async function inTime<T>(work: Promise<T>, { name }: Member): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    const error = () => new ApiError(504, `The compute ${name} did not answer within ${patienceMs / 1000} s`)
    timer = setTimeout(() => reject(error()), patienceMs)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
    work.catch(() => {})
  }
}

const named = (error: unknown, { name }: Member): unknown =>
  error instanceof ApiError
    ? new ApiError(error.status, `At the compute ${name}: ${error.message}`, {
        cause: error,
        headers: error.headers,
        ...(error.extra.image !== undefined && { image: error.extra.image }),
      })
    : error
