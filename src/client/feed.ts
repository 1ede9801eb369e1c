import { jsonIn } from '../compute/remote/answer.ts'
import { Lines } from '../compute/remote/lines.ts'
import { pause } from '../lib/async/pause.ts'
import { type FeedLine, isFeedLine } from './feed-line.ts'
import { PatchbayError } from './patchbay-error.ts'

export interface FeedOptions {
  /** Id or name of a project; absent: all projects. */
  readonly project?: string
  /** `seq` of the last event that was seen. */
  readonly since?: number
  readonly signal?: AbortSignal
  /** Called when the connection is lost, and when it is there again (undefined). */
  readonly onLost?: (error: PatchbayError | undefined) => void
}

type OpenFeed = (input: { since: number | undefined; signal: AbortSignal }) => Promise<Pick<Response, 'body'>>

/** A service sends a line every 5 s: a feed that is silent for longer than this, ms, is lost. */
const silentMs = 20_000
/** Times between tries to connect again, ms. */
const [firstPauseMs, longestPauseMs] = [200, 5000]
const maxLineCharacters = 4 << 20

/** The lines of a feed. It connects again from the last line on when the connection is lost. */
export async function* feedLines(open: OpenFeed, options: FeedOptions): AsyncGenerator<FeedLine, void, undefined> {
  const { onLost } = options
  const over = new AbortController()
  const signal = options.signal === undefined ? over.signal : AbortSignal.any([options.signal, over.signal])
  let since = options.since
  let pauseMs = firstPauseMs
  let isFirst = true
  try {
    while (!signal.aborted) {
      try {
        for await (const line of connection(open, since, signal)) {
          if (pauseMs !== firstPauseMs) onLost?.(undefined)
          pauseMs = firstPauseMs
          isFirst = false
          since = line.seq ?? since
          yield line
        }
        // The service ends the feed of a project that is closed, and when it ends itself.
        if (options.project !== undefined && !signal.aborted) await (await open({ since, signal })).body?.cancel()
      } catch (error) {
        if (signal.aborted) return
        // A refusal is not repeated. When the first connection fails, the caller decides whether to repeat it.
        if (!(error instanceof PatchbayError) || isFirst || (error.status !== 0 && error.status < 500)) throw error
        onLost?.(error)
      }
      await pause(pauseMs, signal)
      pauseMs = Math.min(pauseMs * 2, longestPauseMs)
    }
  } finally {
    over.abort()
  }
}

/** The lines of one connection. */
async function* connection(open: OpenFeed, since: number | undefined, signal: AbortSignal): AsyncGenerator<FeedLine> {
  const silent = new AbortController()
  let timer = setTimeout(() => silent.abort(), silentMs)
  const lost = (what: string, cause?: unknown) =>
    new PatchbayError(`The feed ${what}`, { status: 0, code: 'lost', cause })
  let lines: Lines | undefined
  try {
    const { body } = await open({ since, signal: AbortSignal.any([signal, silent.signal]) }).catch((cause) => {
      throw silent.signal.aborted && !signal.aborted ? lost(`did not begin within ${silentMs / 1000} s`, cause) : cause
    })
    if (body === null) return
    lines = new Lines(body, maxLineCharacters, () => lost('has a line that is too long'))
    for (;;) {
      const text = await lines.next().catch((cause) => {
        throw lost('was lost', cause)
      })
      clearTimeout(timer)
      timer = setTimeout(() => silent.abort(), silentMs)
      if (text === undefined) return
      const line = jsonIn(text)
      if (isFeedLine(line)) yield line
    }
  } finally {
    clearTimeout(timer)
    lines?.cancel()
  }
}
