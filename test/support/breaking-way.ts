import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * The address of a way to a server that loses a connection at each of the breaks, in turn: when so many bytes, in all, have been sent to
 * the server, or when this text is sent.
 */
export async function breakingWay(url: string, breaks: readonly (number | string)[]): Promise<string> {
  const { hostname, port } = new URL(url)
  const left = [...breaks]
  let sent = 0
  const way = createServer((client) => {
    const server = connect(Number(port), hostname)
    client.on('data', (bytes) => {
      sent += bytes.length
      const [next = Number.POSITIVE_INFINITY] = left
      const isBreak = typeof next === 'number' ? sent >= next : bytes.includes(next)
      if (!isBreak) return void server.write(bytes)
      left.shift()
      client.resetAndDestroy()
    })
    server.pipe(client)
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
  }).listen(0, '127.0.0.1')
  await once(way, 'listening')
  onTestFinished(() => void way.close())
  return `http://127.0.0.1:${(way.address() as AddressInfo).port}`
}
