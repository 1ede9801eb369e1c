import { ignore } from '../../../../src/lib/async/ignore.ts'
import { forNode } from '../../os/programs/environment.ts'
import { programArguments } from '../../os/programs/own-program.ts'
import { startProgram } from '../../os/programs/start.ts'
import { build } from '../../os/system/version.ts'
import { KeeperError } from '../protocol/error.ts'
import type { EmbeddedPcSpec } from '../protocol/protocol.ts'
import type { ChildRecords } from './child-records.ts'
import { encodeFrame, exitOfReplaced, FrameReader, frameType, type PcHostFrame } from './frames.ts'
import { HangDetector, watchedArguments } from './hang-detector.ts'
import { InputWindow } from './input-window.ts'
import type { Runner, UnitEnd } from './runner.ts'

/** The process ends after this time without a pc, ms. */
const idleMs = 60_000
/** Timeout of a start, ms. A start takes less than 1 ms, but the host may be very busy. */
const startMs = 10_000
/** Silence after a request at which the process is ended, ms. Its watchdog ends a turn that hangs much earlier. */
const hungMs = 20_000
/** Packets are short-lived: without a limit V8 lets their memory grow to 16 MB and more, without a gain. */
const nursery = '--max-semi-space-size=2'
const recordKey = 'pc-host'

interface Guest {
  readonly output: (bytes: Uint8Array) => void
  readonly typed: InputWindow
  readonly started: () => void
  readonly failed: (message: string) => void
  readonly ended: (ending: UnitEnd) => void
}

/** The embedded pcs of this keeper. They share one process, which starts with the first pc. */
export class EmbeddedPcs {
  readonly #records: ChildRecords
  readonly #log: (message: string) => void
  #host: Host | undefined
  #idle: NodeJS.Timeout | undefined
  #last = 0

  constructor(records: ChildRecords, log: (message: string) => void) {
    this.#records = records
    this.#log = log
  }

  /** `spawn_failed` when the pc cannot be started, for instance because its UDP port is taken. */
  async start(spec: EmbeddedPcSpec, output: (bytes: Uint8Array) => void): Promise<Runner> {
    const host = this.#running()
    const id = ++this.#last
    const typed = new InputWindow()
    let ended: (ending: UnitEnd) => void = () => {}
    const ending = new Promise<UnitEnd>((resolve) => {
      ended = (exit) => {
        host.guests.delete(id)
        typed.close()
        if (host.guests.size === 0) this.#startIdle(host)
        resolve(exit)
      }
    })
    await new Promise<void>((resolve, reject) => {
      const refuse = (message: string) => {
        clearTimeout(timer)
        ended({ code: null, signal: null })
        reject(new KeeperError('spawn_failed', `the embedded pc cannot be started: ${message}`))
      }
      const timer = setTimeout(() => {
        // The process may still start the pc.
        host.send(encodeFrame(frameType.stop, id))
        this.#suspect(host)
        refuse('its process does not answer')
      }, startMs)
      const started = () => {
        clearTimeout(timer)
        resolve()
      }
      host.guests.set(id, { output, typed, started, failed: refuse, ended })
      host.send(encodeFrame(frameType.start, id, JSON.stringify(spec)))
      ending.then(() => refuse(host.whyEnded), ignore('the end of a process is no failure'))
    })
    return {
      pid: 0,
      ended: ending,
      input(bytes) {
        const offer = typed.offer(bytes.length)
        if (offer.isTaken) host.send(encodeFrame(frameType.input, id, bytes))
        return offer
      },
      wait(isWaiting) {
        host.send(encodeFrame(isWaiting ? frameType.wait : frameType.goOn, id))
      },
      hold(isHeld) {
        host.send(encodeFrame(isHeld ? frameType.hold : frameType.release, id))
      },
      limit() {
        throw new KeeperError('unsupported', 'an embedded pc has no processor time of its own')
      },
      stop: (graceMs) => {
        host.send(encodeFrame(frameType.stop, id))
        // Ends only this pc: the other pcs of the process are not at fault.
        const timer = setTimeout(() => {
          this.#log(`embedded pc ${id} did not end within ${graceMs} ms`)
          this.#suspect(host)
          ended({ code: null, signal: null })
        }, graceMs)
        return ending.finally(() => clearTimeout(timer))
      },
    }
  }

  /** Ends the process; pcs that still run end with it. */
  close(): void {
    clearTimeout(this.#idle)
    this.#host?.close()
  }

  #running(): Host {
    clearTimeout(this.#idle)
    if (this.#host !== undefined) return this.#host
    const host = startHost(() => {
      if (this.#host === host) this.#host = undefined
      this.#records.remove(recordKey)
      if (host.guests.size > 0) this.#log(`the process of the embedded pcs ended with ${host.guests.size} pcs in it`)
      for (const guest of [...host.guests.values()]) guest.ended({ code: null, signal: 'SIGKILL' })
    })
    this.#records.add(recordKey, host.pid)
    this.#host = host
    return host
  }

  /** Ends the process if it does not answer. */
  #suspect(host: Host): void {
    void host.answers(hungMs).then((answers) => {
      if (answers) return
      this.#log(`the process of the embedded pcs has not answered for ${hungMs} ms and will be ended`)
      host.kill()
    })
  }

  #startIdle(host: Host): void {
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => {
      if (this.#host !== host || host.guests.size > 0) return
      this.#host = undefined
      host.close()
    }, idleMs)
    this.#idle.unref()
  }
}

interface Host {
  readonly pid: number
  readonly guests: Map<number, Guest>
  /** The reason of its end, for messages. */
  readonly whyEnded: string
  /** Whether the process sends anything within `ms`; true also when it has ended. */
  answers(ms: number): Promise<boolean>
  send(frame: Buffer): void
  close(): void
  kill(): void
}

function startHost(gone: () => void): Host {
  const guests = new Map<number, Guest>()
  const program = programArguments(new URL('./pc-host.ts', import.meta.url), new URL('./pc-host.js', import.meta.url))
  const child = startProgram(process.execPath, [nursery, ...watchedArguments, ...program, build], {
    variables: forNode,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const { stdin, stdout } = child
  if (stdin === null || stdout === null) throw new KeeperError('spawn_failed', 'the embedded pcs have no pipe')
  const reader = new FrameReader()
  const ask = () => void stdin.write(encodeFrame(frameType.areYouThere, 0))
  const detector = child.pid === undefined ? undefined : new HangDetector(child, child.pid, ask)
  let heard = () => {}
  let isReplaced = false
  let answer: Promise<boolean> | undefined
  stdin.on('error', () => {})
  stdout.on('error', () => {})
  stdout.on('data', (bytes: Buffer) => {
    heard()
    detector?.heard()
    for (const frame of reader.push(bytes)) {
      const guest = guests.get(frame.pc)
      // The start of this pc had timed out.
      if (guest === undefined && frame.type === frameType.started) stdin.write(encodeFrame(frameType.stop, frame.pc))
      dispatch(guest, frame)
    }
  })
  child.once('error', gone)
  child.once('exit', (code) => {
    isReplaced = code === exitOfReplaced
    heard()
    gone()
  })
  return {
    pid: child.pid ?? 0,
    guests,
    get whyEnded() {
      return isReplaced ? 'the files of the program were replaced: restart the service' : 'its process ended'
    },
    answers(ms) {
      answer ??= new Promise<boolean>((resolve) => {
        const timer = setTimeout(() => resolve(false), ms)
        heard = () => {
          clearTimeout(timer)
          resolve(true)
        }
        ask()
      }).finally(() => {
        answer = undefined
        heard = () => {}
      })
      return answer
    },
    send: (frame) => void stdin.write(frame),
    close: () => void stdin.end(),
    kill: () => void child.kill('SIGKILL'),
  }
}

function dispatch(guest: Guest | undefined, { type, payload }: PcHostFrame): void {
  if (type === frameType.output) guest?.output(payload)
  else if (type === frameType.taken) guest?.typed.taken(payload.readUInt32LE(0))
  else if (type === frameType.started) guest?.started()
  else if (type === frameType.failed) guest?.failed(payload.toString())
  else if (type === frameType.ended) guest?.ended({ code: Number(payload.toString()), signal: null })
}
