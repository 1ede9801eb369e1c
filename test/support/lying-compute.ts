import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { httpTransport } from '../../runtime/node/service/fleet/http-transport.ts'
import type { RemoteOptions } from '../../src/compute/remote/options.ts'
import { RemoteHostAgent } from '../../src/compute/remote/remote-host-agent.ts'
import type { ComputeAddress } from '../../src/compute/remote/transport.ts'

export type Answer = (req: IncomingMessage, res: ServerResponse, count: number) => void

export interface LyingCompute {
  readonly agent: RemoteHostAgent
  /** Requests as they came: method, path with query, and headers. */
  readonly requests: IncomingMessage[]
  /** Resolves when a client has left a request. */
  readonly left: Promise<void>
}

/** Something that answers in the place of a compute, and its agent. It is gone when the test ends. */
export async function lyingCompute(answer: Answer, options: Partial<RemoteOptions> = {}): Promise<LyingCompute> {
  const requests: IncomingMessage[] = []
  let leave = () => {}
  const left = new Promise<void>((resolve) => {
    leave = resolve
  })
  const server = createServer((req, res) => {
    requests.push(req)
    res.once('close', () => !res.writableFinished && leave())
    answer(req, res, requests.length)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { agent: agentAt((server.address() as AddressInfo).port, options), requests, left }
}

const addressOf = (port: number): ComputeAddress => ({
  compute_id: 'one',
  protocol: 'http',
  host: '127.0.0.1',
  port,
})

/** The agent of what is at a port of this machine, straight over the transports of Node. */
export function agentAt(port: number, options: Partial<RemoteOptions> = {}): RemoteHostAgent {
  const { transport, close } = httpTransport()
  onTestFinished(close)
  const address = addressOf(port)
  return new RemoteHostAgent({
    name: 'one',
    send: transport(address),
    ...options,
  })
}

/** JSON as an endpoint answers it. */
export const says =
  (body: unknown, status = 200, headers: Record<string, string> = {}): Answer =>
  (_, res) => {
    res.writeHead(status, { 'content-type': 'application/json', 'x-route': '/', ...headers })
    res.end(JSON.stringify(body))
  }

/** Ends the connection as a program does that dies. */
export const dies: Answer = (req) => (req.socket as Socket).resetAndDestroy()

/** What an operation was refused with. */
export async function refusal(result: Promise<unknown>): Promise<{ status: number; message: string }> {
  try {
    await result
  } catch (error) {
    return error as { status: number; message: string }
  }
  throw new Error('it was not refused')
}
