import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { Patchbay } from '../client/patchbay.ts'
import { onAbort } from '../lib/async/abort.ts'
import { ignore } from '../lib/async/ignore.ts'
import { type AssistantOptions, AssistantServer } from './server.ts'

interface MessageOptions extends Omit<AssistantOptions, 'client'> {
  /** Sends a request to the service as its client does. */
  readonly ask: (request: Request) => Promise<Response>
}

/** Answers one message that came by HTTP, by a server of its own: nothing is kept between two messages. */
export async function answerMessage(
  request: Request,
  message: unknown,
  { ask, ...options }: MessageOptions,
): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport()
  const client = new Patchbay({ server: request.url, fetch: (url, init) => ask(new Request(url, init)) })
  const server = new AssistantServer({ ...options, client })
  await server.connect(transport as Transport)
  onAbort(options.signal, () => {
    server.close().catch(ignore('nobody waits for it'))
  })
  return transport.handleRequest(request, { parsedBody: message })
}
