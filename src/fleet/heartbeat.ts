import { Lines } from '../client/lines.ts'

/** Longest line of a feed, characters. */
const longest = 1 << 20

class Wrong extends Error {}

export interface HeartbeatOptions {
  /** Timeout of a feed without data, ms. */
  readonly silenceMs: number
  /** Ends the reading. */
  readonly signal: AbortSignal
  /** Called for every line. */
  readonly line: (line: Readonly<Record<string, unknown>>) => void
}

/** Reads a feed of JSON lines until it ends; resolves with the reason. */
export async function followHeartbeat(
  feed: ReadableStream<Uint8Array>,
  { silenceMs, signal, line }: HeartbeatOptions,
): Promise<string> {
  const lines = new Lines(feed, longest, () => new Wrong('its feed of events has a line without an end'))
  let timer: ReturnType<typeof setTimeout> | undefined
  let stop: (reason: string) => void = () => {}
  const stopped = new Promise<string>((resolve) => {
    stop = resolve
  })
  const live = () => {
    clearTimeout(timer)
    timer = setTimeout(() => stop(`it was silent for ${silenceMs / 1000} s`), silenceMs)
  }
  const aborted = () => stop('it was given up')
  const read = async (): Promise<string> => {
    for (;;) {
      const text = await lines.next()
      if (text === undefined) return 'its feed of events ended'
      live()
      const value = parsed(text)
      if (value === undefined) return 'its feed of events is no JSON'
      line(value)
    }
  }
  live()
  signal.addEventListener('abort', aborted, { once: true })
  try {
    return await Promise.race([
      read().catch((error) => (error instanceof Wrong ? error.message : 'the connection to it broke')),
      stopped,
    ])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', aborted)
    lines.cancel()
  }
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
