import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { ApiError } from '../../src/errors.ts'
import type { CaptureSource, HostAgent, StoredFile } from '../../src/host-agent.ts'

/**
 * Gives the host agent of this process to a worker: `POST /{room}/{operation}` with the JSON arguments in a header and a
 * stream as body; answers with JSON, or with a stream. Lines of a feed are JSON.
 */
export async function serveAgent(agent: HostAgent): Promise<{ url: string; server: Server }> {
  const server = createServer((req, res) => {
    void (async () => {
      const over = new AbortController()
      res.on('close', () => over.abort())
      try {
        const [, room, name] = (req.url ?? '').split('/')
        const args = JSON.parse(decodeURIComponent(String(req.headers['x-arguments']))) as unknown[]
        const operations = (
          agent as unknown as Record<string, Record<string, (...args: unknown[]) => Promise<unknown>>>
        )[room ?? '']
        const call = `${room}.${name}`
        if (call === 'events.open') args[0] = { ...(args[0] as object), signal: over.signal }
        if (call === 'host.doctor') args[0] = over.signal
        if (room === 'dynamips') args[1] = over.signal
        if (call === 'nodes.followCapture') args[2] = over.signal
        if (call === 'nodes.streamCapture') args[3] = over.signal
        if (call === 'files.write' || call === 'images.write') args[2] = Readable.toWeb(req)
        const result = await operations?.[name ?? '']?.(...args)
        if (call === 'files.read' || call === 'images.read') {
          const { content, ...facts } = result as StoredFile
          res.writeHead(200, { 'x-facts': JSON.stringify(facts) })
          for await (const chunk of content) res.write(chunk)
        } else if (call === 'nodes.followCapture' || call === 'nodes.streamCapture') {
          const { pcap, ...names } = result as CaptureSource
          res.writeHead(200, { 'x-names': encodeURIComponent(JSON.stringify(names)), 'content-encoding': 'identity' })
          res.flushHeaders()
          for await (const chunk of pcap) res.write(chunk)
        } else if (call === 'events.open') {
          res.writeHead(200, { 'content-encoding': 'identity' })
          res.flushHeaders()
          for await (const item of result as ReadableStream) res.write(`${JSON.stringify(item)}\n`)
        } else res.write(JSON.stringify(result ?? null))
        res.end()
      } catch (error) {
        const { status, extra, headers } = error instanceof ApiError ? error : new ApiError(500, '')
        const fault = encodeURIComponent(JSON.stringify({ status, ...extra, headers }))
        if (!res.headersSent) res.writeHead(599, { 'x-fault': fault, 'content-type': 'text/plain; charset=utf-8' })
        res.end((error as Error).message)
      }
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}
