import { pause, type StartTimer, startTimer } from '../../../../../src/lib/async/pause.ts'
import { equalBytes, formatIp4, formatIp6, type Ip6, type Mac, parseIp4, parseIp6 } from './address.ts'
import { read16 } from './bytes.ts'
import { etherType } from './ethernet.ts'
import { Gate } from './gate.ts'
import type { Remote } from './host-stack.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import type { Listener, NetEvent, SendRefusal, SendResult } from './net-event.ts'
import { Stack4 } from './stack4.ts'
import { Stack6 } from './stack6.ts'

/** An address of either family. */
export type IpTarget =
  | { readonly family: 4; readonly address: number; readonly text: string }
  | { readonly family: 6; readonly address: Ip6; readonly text: string }

/** The network side of a pc: both stacks, and the commands that wait for packets. */
export class Net {
  readonly mac: Mac
  readonly ip4: Stack4
  readonly ip6: Stack6
  readonly lease: LeaseKeeper
  /** While the gate is closed, the pc sends and receives nothing, and its commands wait. */
  readonly gate = new Gate()
  dns: number[] = []
  domain = ''
  readonly startTimer: StartTimer
  readonly #listeners = new Set<Listener>()
  readonly #openPorts = new Set<number>()
  #lastPort = 1024 + Math.floor(Math.random() * 30_000)

  constructor(mac: Mac, send: (frame: Uint8Array) => void, timer: StartTimer = startTimer) {
    this.mac = mac
    this.startTimer = timer
    const emit: Listener = (event) => {
      for (const listener of this.#listeners) listener(event)
    }
    const sendOpen = (frame: Uint8Array) => {
      if (this.gate.isClosed) return
      // What is for an address of this pc never reaches the wire, on which no one would answer.
      if (equalBytes(frame.subarray(0, 6), mac)) this.receive(frame)
      else send(frame)
    }
    this.ip4 = new Stack4(mac, sendOpen, emit, timer)
    this.ip6 = new Stack6(mac, sendOpen, emit, timer)
    this.ip4.isListening = (port) => this.#openPorts.has(port)
    this.ip6.isListening = this.ip4.isListening
    this.lease = new LeaseKeeper(this)
  }

  /** Handles a frame from the wire; drops frames for other hosts. */
  receive(frame: Uint8Array): void {
    if (frame.length < 14 || this.gate.isClosed) return
    const isGroup = ((frame[0] ?? 0) & 1) === 1
    if (!isGroup && !equalBytes(frame.subarray(0, 6), this.mac)) return
    const type = read16(frame, 12)
    if (type === etherType.ip4) this.ip4.receive(frame)
    else if (type === etherType.arp) this.ip4.receiveArp(frame)
    else if (type === etherType.ip6) this.ip6.receive(frame)
  }

  to(target: IpTarget): Remote {
    return target.family === 4 ? this.ip4.to(target.address) : this.ip6.to(target.address)
  }

  /**
   * Sends a packet, and waits up to `ms` for the first event that passes. Returns why the packet could not be sent, or the answer;
   * neither of them after the timeout or the abort.
   */
  async ask<T>(
    send: () => Promise<SendResult>,
    ms: number,
    signal: AbortSignal,
    passes: (event: NetEvent) => T | undefined,
  ): Promise<{ readonly refusal?: SendRefusal; readonly answer?: T }> {
    let answer: T | undefined
    let wake = () => {}
    const listener: Listener = (event) => {
      answer ??= passes(event)
      if (answer !== undefined) wake()
    }
    this.#listeners.add(listener)
    try {
      const result = await send()
      if (result !== 'sent') return { refusal: result }
      if (answer === undefined) {
        const started = (end: () => void) => {
          wake = end
        }
        await pause(ms, signal, started, this.startTimer)
        await this.gate.pass()
      }
      return answer === undefined ? {} : { answer }
    } finally {
      this.#listeners.delete(listener)
    }
  }

  /** Opens a port for a command. Until `close` only the command receives its packets. */
  openPort(wanted?: number): { port: number; close: () => void } {
    this.#lastPort = this.#lastPort >= 60_000 ? 1024 : this.#lastPort + 1
    const port = wanted ?? this.#lastPort
    this.#openPorts.add(port)
    return { port, close: () => this.#openPorts.delete(port) }
  }

  close(): void {
    this.gate.open()
    this.#listeners.clear()
    this.lease.drop()
    this.ip4.close()
    this.ip6.close()
  }
}

/** Parses an address; undefined for a name. */
export function parseTarget(text: string): IpTarget | undefined {
  const ip4 = parseIp4(text)
  if (ip4 !== undefined) return { family: 4, address: ip4, text: formatIp4(ip4) }
  const ip6 = parseIp6(text)
  return ip6 && { family: 6, address: ip6, text: formatIp6(ip6) }
}
