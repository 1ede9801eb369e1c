import { onTestFinished } from 'vitest'
import { AnsweringEnd, type AnsweringOptions } from '../../src/compute/tunnel/answering.ts'
import { AskingEnd, type AskingOptions } from '../../src/compute/tunnel/asking.ts'
import { frameKinds } from '../../src/compute/tunnel/frames.ts'
import type { TunnelEnd } from '../../src/compute/tunnel/link.ts'
import type { TunnelWire } from '../../src/compute/tunnel/outbox.ts'
import type { Socket, Upgrade } from '../../src/lib/http/socket.ts'
import type { TunnelLimits } from '../../src/model/tunnel.ts'

type Message = Uint8Array | string
export interface Receiver {
  message(data: Message): void
  closed(code: number, reason: string): void
}

/** One direction of a websocket: messages are delivered in order, in turns of the event loop. */
export class Lane implements TunnelWire {
  #to: () => Receiver
  readonly #most: number
  readonly #queue: Message[] = []
  #bytes = 0
  #isRunning = false
  #isHeld = false
  #close: [number, string] | undefined
  #drainers: (() => void)[] = []
  /** Everything that was sent, but for its payload. */
  readonly sent: { readonly kind: number | string; readonly stream: number; readonly bytes: number }[] = []

  /** `most`: bytes that wait before a sender is held up. */
  constructor(to: () => Receiver, most = 64 * 1024) {
    this.#to = to
    this.#most = most
  }

  send(data: Message): void {
    if (this.#close !== undefined) throw new Error('the websocket is closed')
    if (typeof data === 'string') this.sent.push({ kind: data, stream: 0, bytes: 0 })
    else {
      const stream = new DataView(data.buffer, data.byteOffset).getUint32(2)
      this.sent.push({ kind: data[0] ?? 0, stream, bytes: data.length - 6 })
    }
    this.#queue.push(data)
    this.#bytes += data.length
    void this.#run()
  }

  /** From now on another has this end of the websocket. */
  deliverTo(receiver: Receiver): void {
    this.#to = () => receiver
  }

  close(code: number, reason: string): void {
    this.#close ??= [code, reason]
    void this.#run()
  }

  async drained(): Promise<void> {
    while (this.#bytes > this.#most) await new Promise<void>((resolve) => this.#drainers.push(resolve))
  }

  /** Nothing is delivered until `release`. */
  hold(): void {
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
    void this.#run()
  }

  /** Bytes of the bodies of a stream that were sent. */
  dataOf(stream: number): number {
    return this.sent
      .filter((it) => it.kind === frameKinds.data && it.stream === stream)
      .reduce((sum, it) => sum + it.bytes, 0)
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    await new Promise((resolve) => setImmediate(resolve))
    while (!this.#isHeld) {
      const data = this.#queue.shift()
      if (data === undefined) break
      this.#bytes -= data.length
      this.#to().message(data)
      for (const wake of this.#drainers.splice(0)) wake()
      if (Math.random() < 0.5) await new Promise((resolve) => setImmediate(resolve))
    }
    this.#isRunning = false
    if (this.#close === undefined || this.#queue.length > 0) return
    this.#to().closed(...this.#close)
  }
}

export interface TunnelPair {
  readonly asking: AskingEnd
  readonly answering: AnsweringEnd
  /** From the gateway, and from the compute. */
  readonly down: Lane
  readonly up: Lane
  readonly ends: { asking?: TunnelEnd; answering?: TunnelEnd }
}

export interface PairOptions {
  readonly fetch: AnsweringOptions['fetch']
  readonly limits?: TunnelLimits
  readonly most?: number
  readonly asking?: Partial<AskingOptions>
  readonly answering?: Partial<AnsweringOptions>
}

export const who = { version: '1.4.2', compute_id: 'c1', name: 'one' }

/** A tunnel in memory, whose compute has been taken. */
export async function tunnelPair({ fetch, limits, most = 64 * 1024, ...more }: PairOptions): Promise<TunnelPair> {
  const ends: TunnelPair['ends'] = {}
  const down: Lane = new Lane(() => answering, most)
  const up: Lane = new Lane(() => asking, most)
  const shared = limits === undefined ? {} : { limits }
  const asking: AskingEnd = new AskingEnd({
    wire: down,
    version: '1.4.2',
    ...shared,
    greeted: () => asking.accept(),
    ended(end) {
      ends.asking = end
    },
    ...more.asking,
  })
  let taken = () => {}
  const isTaken = new Promise<void>((resolve) => {
    taken = resolve
  })
  const answering: AnsweringEnd = new AnsweringEnd({
    wire: up,
    who,
    ...shared,
    fetch,
    greeted: () => taken(),
    ended(end) {
      ends.answering = end
    },
    ...more.answering,
  })
  await isTaken
  const pair = { asking, answering, down, up, ends }
  onTestFinished(() => {
    pair.asking.close(1001, 'The test ends')
    pair.answering.close(1001, 'The test ends')
  })
  return pair
}

export const request = (path: string, more: object = {}) => ({
  method: 'GET',
  path: `/v2/compute/${path}`,
  headers: {},
  body: null,
  signal: new AbortController().signal,
  ...more,
})

/** Resolves in a later turn of the event loop, when the condition holds. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}

/** Answers every upgrade; `open` is given the socket. */
export const socketServer =
  (open: (socket: Socket) => void): AnsweringOptions['fetch'] =>
  async (request: Request, upgrade: Upgrade) =>
    upgrade(request, { open, abandon() {} })

/** A body of pieces that are made when they are asked for; `made` counts them. */
export function pieces(count: number, bytes: number): { body: ReadableStream<Uint8Array>; made: () => number } {
  let made = 0
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (made === count) return controller.close()
        made += 1
        controller.enqueue(new Uint8Array(bytes).fill(made))
      },
    },
    { highWaterMark: 0 },
  )
  return { body, made: () => made }
}
