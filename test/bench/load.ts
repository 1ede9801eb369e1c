import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'

export interface LoadResult {
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Processor time of a request in the program that was looked at, ms; 0 where none was. */
  readonly cpuMs: number
}

export interface LoadOptions {
  /** With which every request is sent, if not with the credentials of the URL. */
  readonly bearer?: string
  /** The processor time so far of a program to look at, ms. */
  readonly cpu?: () => number
}

/**
 * A closed loop: every connection sends a GET, waits for the whole answer, and sends the next. Latencies are those of requests that were sent
 * after the warm-up: at its begin all connections are opened at once.
 */
export async function load(
  url: string,
  connections: number,
  seconds: number,
  warmUpSeconds = 1,
  { bearer, cpu = () => 0 }: LoadOptions = {},
): Promise<LoadResult> {
  const target = new URL(url)
  const credentials = bearer === undefined ? basicOf(target) : `Bearer ${bearer}`
  const authorization = credentials === undefined ? '' : `Authorization: ${credentials}\r\n`
  const request = Buffer.from(`GET ${target.pathname} HTTP/1.1\r\nHost: ${target.host}\r\n${authorization}\r\n`)
  const latencies: number[] = []
  const state: LoopState = { since: Number.POSITIVE_INFINITY, answered: 0, over: false }
  const sockets = Array.from({ length: connections }, () => loop(target, request, latencies, state))
  await wait(warmUpSeconds * 1000)
  const [began, cpuBefore] = [performance.now(), cpu()]
  state.since = began
  await wait(seconds * 1000)
  const { answered } = state
  state.over = true
  const [elapsed, used] = [(performance.now() - began) / 1000, cpu() - cpuBefore]
  for (const socket of sockets) socket.destroy()
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN
  return { perSecond: answered / elapsed, p50: at(0.5), p99: at(0.99), cpuMs: used / answered }
}

const basicOf = ({ username, password }: URL): string | undefined =>
  username === '' ? undefined : `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

interface LoopState {
  /** When the warm-up ended, by the clock of `performance`. */
  since: number
  /** Requests answered since then, also those sent before. */
  answered: number
  over: boolean
}

function loop(target: URL, request: Buffer, latencies: number[], state: LoopState): Socket {
  const socket = connect(Number(target.port), target.hostname)
  socket.setNoDelay(true)
  let sent = 0
  let received = 0
  let expected = -1
  const next = () => {
    sent = performance.now()
    received = 0
    expected = -1
    socket.write(request)
  }
  socket.on('connect', next)
  socket.on('error', (error) => {
    if (!state.over) throw error
  })
  socket.on('data', (chunk) => {
    if (expected < 0) {
      // An answer's head fits in the first segment on loopback.
      const head = chunk.toString('latin1')
      const end = head.indexOf('\r\n\r\n')
      const length = /content-length: (\d+)/i.exec(head)?.[1]
      if (end < 0 || length === undefined || !head.startsWith('HTTP/1.1 200'))
        throw new Error(`unexpected answer: ${head}`)
      expected = end + 4 + Number(length)
    }
    received += chunk.length
    if (received < expected || state.over) return
    const now = performance.now()
    if (now >= state.since) state.answered += 1
    if (sent >= state.since) latencies.push(now - sent)
    next()
  })
  return socket
}
