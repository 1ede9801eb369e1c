import { mkdtemp, readdir, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, badRequest, conflict } from '../../../../src/errors.ts'
import { findProgram } from '../../find-program.ts'
import { translated } from '../../projects/disk.ts'
import { freePort, lastWords, type StartChild, startChild, unprivileged } from './child.ts'
import { Hypervisor, HypervisorError } from './hypervisor.ts'
import { autoIdlePc, type Clock, type IdlePcBounds, type IdlePcOptions, idleProposals } from './idle-pc.ts'
import { type DynamipsPlatform, defaultRam, dynamipsPlatforms, isPlatform, requireIosImage } from './image.ts'
import { watchLoad } from './load.ts'

export interface DynamipsBounds extends IdlePcBounds {
  /** From the start of the program until it takes commands. */
  readonly readyMs: number
  /** Between the signals that end it. */
  readonly graceMs: number
}

export interface DynamipsOptions {
  /** The program: a path, or a name to look for in PATH. */
  readonly program?: () => string
  /** Where the directories are made that dynamips works in. */
  readonly directory?: () => string
  readonly start?: StartChild
  readonly port?: () => Promise<number>
  readonly bounds?: Partial<DynamipsBounds>
  readonly clock?: Clock
}

export interface IdlePcQuestion {
  readonly platform: string
  /** The file, absolute. */
  readonly image: string
  /** What a client calls the image; the path otherwise. */
  readonly imageName?: string
  /** MB; that of the platform when absent. */
  readonly ram?: number | undefined
}

const prefix = 'patchbay-dynamips-'
/** What dynamips calls the router. */
const name = 'router'
/** Dynamips is told this in place of the path, which may have what its protocol cannot carry. */
const imageLink = 'image.bin'
const mostRam = 4096
/** Somebody else may take the port before dynamips does. */
const attempts = 3

/** Answers questions about images, each with a dynamips of its own that is gone with the answer. */
export class Dynamips {
  readonly #options: DynamipsOptions
  readonly #closing = new AbortController()
  #asking: Promise<unknown> | undefined

  constructor(options: DynamipsOptions = {}) {
    this.#options = options
  }

  /** The idle-PC value of an image, as `0x60008120`. 400, 408, 409; takes minutes. */
  computeIdlePc(question: IdlePcQuestion, signal?: AbortSignal): Promise<string> {
    return this.#ask(question, signal, autoIdlePc)
  }

  /** Values that may be the idle PC of an image, as `0x60008120 [47]`. 400, 408, 409; takes half a minute. */
  proposals(question: IdlePcQuestion, signal?: AbortSignal): Promise<string[]> {
    return this.#ask(question, signal, idleProposals)
  }

  /** Ends what runs. */
  async close(): Promise<void> {
    this.#closing.abort(conflict('The service is stopping'))
    await this.#asking
  }

  async #ask<T>(
    question: IdlePcQuestion,
    signal: AbortSignal | undefined,
    measure: (options: IdlePcOptions) => Promise<T>,
  ): Promise<T> {
    // Two that are measured at the same time would each take the processor from the other.
    if (this.#asking !== undefined) throw conflict('An idle-PC value is being looked for already; try again later')
    const either = AbortSignal.any([this.#closing.signal, ...(signal === undefined ? [] : [signal])])
    const answer = this.#answer(question, either, measure)
    this.#asking = answer.catch(() => {})
    try {
      return await answer
    } finally {
      this.#asking = undefined
    }
  }

  async #answer<T>(
    question: IdlePcQuestion,
    signal: AbortSignal,
    measure: (options: IdlePcOptions) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted()
    const { platform, image, imageName = image } = question
    if (!isPlatform(platform)) throw badRequest(`platform: expected one of ${dynamipsPlatforms.join(', ')}`)
    const ram = question.ram ?? defaultRam[platform]
    if (!Number.isInteger(ram) || ram < 1 || ram > mostRam) throw badRequest(`ram: expected 1 to ${mostRam} MB`)
    const program = this.#program()
    await requireIosImage(image, imageName)
    const { bounds, clock, directory: parent = tmpdir } = this.#options
    const directory = await translated('dynamips', () => mkdtemp(join(parent(), prefix)))
    try {
      const command = await translated('dynamips', async () => {
        await symlink(await realpath(image), join(directory, imageLink))
        return unprivileged(program, directory)
      })
      const run = await this.#start(command, directory, signal)
      // Nobody waits for a router to be stopped in order: it goes with the program.
      const end = () => void run.child.stop(run.graceMs)
      signal.addEventListener('abort', end, { once: true })
      try {
        await prepare(run.client, platform, ram, signal)
        return await measure({
          client: run.client,
          name,
          signal,
          isThrownAway: true,
          watchLoad: () => watchLoad(run.child.pid),
          ...(bounds !== undefined && { bounds }),
          ...(clock !== undefined && { clock }),
        })
      } catch (error) {
        signal.throwIfAborted()
        await run.child.stop(run.graceMs)
        throw await explained(error, run.log, directory)
      } finally {
        signal.removeEventListener('abort', end)
        run.client.close()
        await run.child.stop(run.graceMs)
      }
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  }

  #program(): string {
    const wanted = this.#options.program?.() ?? 'dynamips'
    const found = findProgram(wanted)
    if (found !== undefined) return found
    throw conflict(`${wanted} was not found; sudo apt-get install dynamips (Debian: component non-free)`)
  }

  /** Starts dynamips and reaches it; 409 with its last words. */
  async #start(command: string, cwd: string, signal: AbortSignal) {
    const { start = startChild, port: nextPort = freePort, bounds } = this.#options
    const { readyMs = 10_000, graceMs = 2000 } = bounds ?? {}
    for (let attempt = 1; ; attempt++) {
      const port = await nextPort()
      const args = ['-N1', '-l', 'dynamips.log', '-H', `127.0.0.1:${port}`]
      const log = join(cwd, `output-${attempt}.txt`)
      const child = await start({ command, args, cwd, log }).catch((cause: Error) => {
        throw conflict(`dynamips cannot be started: ${cause.message}`, { cause })
      })
      const ended = new AbortController()
      void child.ended.then(() => ended.abort())
      try {
        const either = AbortSignal.any([signal, ended.signal])
        const client = await reach(port, readyMs, either)
        // Whoever has the port now would have answered otherwise.
        if (!ended.signal.aborted) return { child, client, log, graceMs }
        client.close()
        throw new HypervisorError('closed', 'Dynamips has ended')
      } catch (error) {
        // Who has the port may have answered before dynamips finds that it does not get it, and ends.
        const isStranger = error instanceof HypervisorError && ['closed', 'protocol', 'refused'].includes(error.code)
        const late = delay(isStranger ? readyMs : 0, false, { ref: false, signal }).catch(() => false)
        const hasEnded = await Promise.race([child.ended.then(() => true), late])
        await child.stop(graceMs)
        signal.throwIfAborted()
        if (!hasEnded || attempt >= attempts) throw await explained(error, log, cwd)
      }
    }
  }
}

/** Removes the directories that a service that was killed left. */
export async function removeLeftovers(directory: string): Promise<void> {
  for (const entry of await readdir(directory).catch(() => [])) {
    if (entry.startsWith(prefix)) await rm(join(directory, entry), { recursive: true, force: true })
  }
}

async function reach(port: number, ms: number, signal: AbortSignal): Promise<Hypervisor> {
  const client = await Hypervisor.connect({ port, ms, signal })
  try {
    await client.run('hypervisor version', [], { ms, signal })
    return client
  } catch (error) {
    client.close()
    throw error
  }
}

async function prepare(
  client: Hypervisor,
  platform: DynamipsPlatform,
  ram: number,
  signal: AbortSignal,
): Promise<void> {
  const bound = { ms: 10_000, signal }
  await client.run('vm create', [name, 1, platform], bound)
  await client.run('vm set_ram', [name, ram], bound)
  // Memory of its own: a file as large as it would be left to the disk.
  await client.run('vm set_ram_mmap', [name, 0], bound)
  await client.run('vm set_ios', [name, imageLink], bound)
  // Its console is on this card, and IOS does not go on without one.
  if (platform === 'c7200') await client.run('vm slot_add_binding', [name, 0, 0, 'C7200-IO-FE'], bound)
}

/** What went wrong, with what dynamips wrote before that. */
async function explained(error: unknown, log: string, directory: string): Promise<unknown> {
  const cause = error instanceof ApiError ? error.cause : error
  if (!(cause instanceof HypervisorError)) return error
  const words = await lastWords(log, directory)
  const { status, message } = error instanceof ApiError ? error : conflict(cause.message)
  return new ApiError(status, words === '' ? message : `${message}: ${words}`, { cause })
}
