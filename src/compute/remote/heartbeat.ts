import { abortable, onAbort } from '../../lib/async/abort.ts'
import type { FeedLimit } from '../../model/feed-limit.ts'
import { jsonIn } from './answer.ts'
import { Lines } from './lines.ts'

/** Longest line of a feed, characters. */
const longest = 1 << 20

class Wrong extends Error {}

export interface HeartbeatOptions {
  /** Timeout of a feed without data, ms. */
  readonly silenceMs: number
  readonly limit: FeedLimit
  /** Ends the reading. */
  readonly signal: AbortSignal
  /** Called for every line. */
  readonly line: (line: Readonly<Record<string, unknown>>) => void
}

/** Reads a feed of JSON lines until it ends; resolves with the reason. */
export async function followHeartbeat(
  feed: ReadableStream<Uint8Array>,
  { silenceMs, limit, signal, line }: HeartbeatOptions,
): Promise<string> {
  const lines = new Lines(feed, longest, () => new Wrong('a line of its event feed is too long'), limit)
  const over = new AbortController()
  const forget = onAbort(signal, () => over.abort('it was given up'))
  let timer: ReturnType<typeof setTimeout> | undefined
  const live = () => {
    clearTimeout(timer)
    timer = setTimeout(() => over.abort(`it sent nothing for ${silenceMs / 1000} s`), silenceMs)
  }
  const read = async (): Promise<string> => {
    for (;;) {
      const text = await lines.next()
      if (text === undefined) return 'its event feed ended'
      live()
      const value = jsonIn(text)
      if (typeof value !== 'object' || value === null) return 'its event feed is not JSON'
      line(value as Record<string, unknown>)
    }
  }
  live()
  try {
    return await abortable(read(), over.signal)
  } catch (error) {
    if (over.signal.aborted) return over.signal.reason
    return error instanceof Wrong ? error.message : 'the connection was lost'
  } finally {
    clearTimeout(timer)
    forget()
    lines.cancel()
  }
}
