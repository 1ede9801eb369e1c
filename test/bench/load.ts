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
  const [target, request] = requestTo(url, bearer)
  const latencies: number[] = []
  let since = Number.POSITIVE_INFINITY
  let count = 0
  let isOver = false
  const answered = (sent: number): boolean => {
    if (isOver) return false
    const now = performance.now()
    if (now >= since) count += 1
    if (sent >= since) latencies.push(now - sent)
    return true
  }
  const failed = (error: Error) => {
    if (!isOver) throw error
  }
  const sockets = Array.from({ length: connections }, () => loop(target, request, { answered, failed }))
  await wait(warmUpSeconds * 1000)
  const [began, cpuBefore] = [performance.now(), cpu()]
  since = began
  await wait(seconds * 1000)
  const requests = count
  isOver = true
  const [elapsed, used] = [(performance.now() - began) / 1000, cpu() - cpuBefore]
  for (const socket of sockets) socket.destroy()
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN
  return { perSecond: requests / elapsed, p50: at(0.5), p99: at(0.99), cpuMs: used / requests }
}

/**
 * The processor time of a GET in the program that is looked at, ms: of so many on each of some new connections, from the first one to the
 * last answer. No request is under way at either end, so that it can be measured in parts of a second.
 */
export async function cpuOfGets(
  url: string,
  { connections, each, bearer, cpu }: { connections: number; each: number } & Required<LoadOptions>,
): Promise<number> {
  const [target, request] = requestTo(url, bearer)
  const before = cpu()
  const asked = () =>
    new Promise<void>((resolve, reject) => {
      let left = each
      const socket = loop(target, request, {
        answered() {
          left -= 1
          if (left > 0) return true
          socket.destroy()
          resolve()
          return false
        },
        failed: reject,
      })
      socket.once('close', () => reject(new Error(`${url}: a connection ended with ${left} requests left`)))
    })
  await Promise.all(Array.from({ length: connections }, asked))
  return (cpu() - before) / (connections * each)
}

function requestTo(url: string, bearer: string | undefined): [URL, Buffer] {
  const target = new URL(url)
  const credentials = bearer === undefined ? basicOf(target) : `Bearer ${bearer}`
  const authorization = credentials === undefined ? '' : `Authorization: ${credentials}\r\n`
  const request = `GET ${target.pathname} HTTP/1.1\r\nHost: ${target.host}\r\n${authorization}\r\n`
  return [target, Buffer.from(request)]
}

const basicOf = ({ username, password }: URL): string | undefined =>
  username === '' ? undefined : `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

interface Loop {
  /** Called with the time by the clock of `performance` at which the request was sent, ms; the result: whether to send another one. */
  answered(sent: number): boolean
  failed(error: Error): void
}

function loop(target: URL, request: Buffer, { answered, failed }: Loop): Socket {
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
  socket.on('error', failed)
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
    if (received >= expected && answered(sent)) next()
  })
  return socket
}
