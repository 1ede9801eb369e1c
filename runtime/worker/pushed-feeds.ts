import { onAbort } from '../../src/async/abort.ts'
import { ignore } from '../../src/async/ignore.ts'
import type { FeedRequest } from '../../src/host-agent.ts'
import type { FeedItem } from '../../src/model/event.ts'
import type { Objects } from './objects.ts'

/** Most items of a compute that wait; with more its object waits. */
const maxWaiting = 16

interface Told {
  readonly turn: string
  readonly writer: WritableStreamDefaultWriter<FeedItem>
}

/** The feeds of computes in the directory: the objects of the computes send the events, see `EventPump`. */
export class PushedFeeds {
  readonly #objects: Objects
  readonly #open = new Map<string, Told>()

  constructor(objects: Objects) {
    this.#objects = objects
  }

  /** See `EventAgent.open`. */
  async open(id: string, { since, signal }: FeedRequest): Promise<ReadableStream<FeedItem>> {
    const { readable, writable } = new TransformStream<FeedItem, FeedItem>(
      {},
      { highWaterMark: maxWaiting },
      { highWaterMark: 0 },
    )
    const told = { turn: crypto.randomUUID(), writer: writable.getWriter() }
    told.writer.closed.catch(ignore('the reader of the feed gets the error'))
    told.writer.ready.catch(ignore('the reader of the feed gets the error'))
    this.#open.set(id, told)
    const leave = () => {
      this.#end(id, told, signal.reason)
      void this.#objects
        .compute(id)
        .unlisten(told.turn)
        .catch(ignore('its next event gets the answer that nobody listens'))
    }
    try {
      await this.#objects.compute(id).listen(told.turn, since)
    } catch (error) {
      this.#end(id, told, error)
      throw error
    }
    onAbort(signal, leave)
    if (signal.aborted) leave()
    return readable
  }

  /** Takes an item for a subscription (`turn`); undefined: no more follow. False: nobody reads it any more. */
  async heard(id: string, turn: string, item: FeedItem | undefined): Promise<boolean> {
    const told = this.#open.get(id)
    if (told?.turn !== turn) return false
    if (item === undefined) {
      this.#end(id, told, new Error('The feed of the compute ended'))
      return false
    }
    try {
      await told.writer.ready
      void told.writer.write(item).catch(ignore('the reader has left'))
      return true
    } catch {
      return false
    }
  }

  #end(id: string, told: Told, reason: unknown): void {
    if (this.#open.get(id) === told) this.#open.delete(id)
    told.writer.abort(reason).catch(ignore('it has ended already'))
  }
}
