import { onTestFinished } from 'vitest'
import { base } from './api.ts'

export interface Line {
  readonly action: string
  readonly seq?: number
  readonly project_id?: string
  readonly change?: string
  readonly event: Record<string, unknown>
}

interface Feed {
  /** The next line that is no ping. */
  next(): Promise<Line>
  /** Any next line; undefined at the end. */
  line(): Promise<Line | undefined>
  close(): void
}

/** A feed by JSON lines or server-sent events, as the headers ask. */
export async function openFeed(path: string, headers: Record<string, string> = {}): Promise<Feed> {
  const over = new AbortController()
  const answer = await fetch(base + path, {
    headers: { 'accept-encoding': 'identity', ...headers },
    signal: over.signal,
  })
  if (!answer.ok || answer.body === null) throw new Error(`${answer.status} ${await answer.text()}`)
  const isSse = answer.headers.get('content-type') === 'text/event-stream'
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  const separator = isSse ? '\n\n' : '\n'
  let rest = ''
  return feed(
    async () => {
      for (;;) {
        const end = rest.indexOf(separator)
        if (end >= 0) {
          const text = rest.slice(0, end)
          rest = rest.slice(end + separator.length)
          return isSse ? fromSse(text) : (JSON.parse(text) as Line)
        }
        const { done, value } = await reader.read()
        if (done) return undefined
        rest += value
      }
    },
    () => over.abort(),
  )
}

/** A feed by websocket. */
export async function openSocketFeed(path: string): Promise<Feed> {
  const socket = new WebSocket(base.replace('http', 'ws') + path)
  const queue: (Line | undefined)[] = []
  let wake = () => {}
  const push = (line: Line | undefined) => {
    queue.push(line)
    wake()
  }
  socket.onmessage = ({ data }) => push(JSON.parse(String(data)) as Line)
  socket.onclose = () => push(undefined)
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve()
    socket.onerror = () => reject(new Error('the websocket was refused'))
  })
  return feed(
    async () => {
      while (queue.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return queue.shift()
    },
    () => socket.close(),
  )
}

function feed(line: Feed['line'], close: () => void): Feed {
  onTestFinished(close)
  return {
    line,
    close,
    async next() {
      for (;;) {
        const it = await line()
        if (it === undefined) throw new Error('the feed ended')
        if (it.action !== 'ping') return it
      }
    },
  }
}

function fromSse(text: string): Line {
  const fields = Object.fromEntries(
    text.split('\n').map((row) => [row.slice(0, row.indexOf(':')), row.slice(row.indexOf(':') + 2)]),
  )
  const line = JSON.parse(fields.data ?? '') as Line
  if (fields.event !== line.action || (line.seq !== undefined && fields.id !== String(line.seq)))
    throw new Error(`inconsistent: ${text}`)
  return line
}
