import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { onTestFinished } from 'vitest'
import { version } from '../../runtime/node/os/system/version.ts'
import { json, listen } from '../../runtime/node/service/http/server.ts'
import { WebSockets } from '../../runtime/node/service/http/websocket.ts'
import { createApp } from '../../src/app.ts'
import type { LocalHostAgent } from '../../src/host-agent.ts'
import { readHere } from '../../src/importers/readers.ts'
import type { NodeRef } from '../../src/model/kinds/node.ts'
import { startAgent } from './gateway.ts'

/** How long a proxy of tests lets a connection be silent, ms: longer than feeds do, whose pings come every 5 s, on a busy machine too. */
export const cutMs = 8000

export interface SlowCompute {
  readonly url: string
  readonly port: number
  /** Who waits for an idle PC gets it by `answer`, or by `refuse` what is refused; `left` when somebody gave up. */
  readonly asked: { answer(): void; refuse(error: Error): void; readonly left: Promise<void> }[]
}

/** The server of a compute, with a host whose measurements take as long as the test likes. */
export async function slowCompute(silenceMs: number): Promise<SlowCompute> {
  const asked: SlowCompute['asked'] = []
  const host = await startAgent()
  const agent: LocalHostAgent = {
    ...host,
    nodes: Object.assign(Object.create(host.nodes) as LocalHostAgent['nodes'], {
      action: (_ref: NodeRef, _name: string, _input: unknown, signal?: AbortSignal) =>
        new Promise((resolve, reject) => {
          const left = new Promise<void>((leave) => {
            signal?.addEventListener('abort', () => {
              leave()
              reject(signal.reason)
            })
          })
          asked.push({ answer: () => resolve({ idlepc: '0x60608040' }), refuse: reject, left })
        }),
    }),
  }
  const webSockets = new WebSockets()
  const app = createApp({
    agent,
    version,
    admission: {
      access: () => ({ hosts: new Set(['127.0.0.1']), allowedOrigins: new Set(), user: '', password: '', token: '' }),
    },
    jsonBytes: 64 * 1024,
    aliases: {},
    runtime: {
      ...{ json, upgrade: webSockets.upgrade, assets: async () => undefined, read: readHere },
      report: (error) => process.stderr.write(`${(error as Error).stack}\n`),
    },
  })
  const server = await listen({
    ...{ host: '127.0.0.1', port: 0, headerTimeoutMs: 10_000, bodyTimeoutMs: 500 },
    silenceMs,
    app,
    webSockets,
  })
  onTestFinished(() => server.close())
  return { url: server.url, port: Number(new URL(server.url).port), asked }
}

/** The port of a proxy that ends a connection from which no byte came for `cutMs`, as Cloudflare does after 120 s. */
export async function cuttingProxy(to: number): Promise<number> {
  const proxy = createServer((client) => {
    const origin = connect(to, '127.0.0.1')
    const timer = setTimeout(() => client.destroy(), cutMs)
    client.on('data', () => timer.refresh())
    origin.on('data', () => timer.refresh())
    for (const [socket, other] of [
      [client, origin],
      [origin, client],
    ] as const) {
      socket.pipe(other)
      socket.on('error', () => {})
      socket.once('close', () => {
        clearTimeout(timer)
        other.destroy()
      })
    }
  })
  onTestFinished(() => void proxy.close())
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return (proxy.address() as AddressInfo).port
}
