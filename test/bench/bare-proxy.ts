import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The least that a gateway on Node can be: it hands every request on over kept connections, and decides nothing. */
export interface BareProxy {
  readonly url: string
  close(): Promise<void>
}

/** In a process of its own, as the gateway is. */
export async function startBareProxy(compute: string): Promise<BareProxy> {
  const child = spawn(process.execPath, [import.meta.filename, compute], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [url] = await once(child.stdout, 'data')
  return {
    url: String(url).trim(),
    async close() {
      const exited = once(child, 'exit')
      child.kill()
      await exited
    },
  }
}

async function serve(compute: string): Promise<void> {
  const { hostname: host, port } = new URL(compute)
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 64 })
  const server = createServer({ noDelay: true }, (req, res) => {
    const { method, url: path, headers } = req
    const outgoing = send({ host, port, agent, method, path, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.pipe(res)
    })
    req.pipe(outgoing)
  })
  server.listen({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  // It ends with the bench, however that ends.
  process.stdin.resume().once('end', () => process.exit())
}

if (process.argv[1] === import.meta.filename) await serve(process.argv[2] ?? '')
