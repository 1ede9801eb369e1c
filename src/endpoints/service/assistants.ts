import { Type } from '@sinclair/typebox'
import { badRequest } from '../../lib/errors/api-error.ts'
import { readText } from '../../lib/http/body.ts'
import { jsonFault } from '../../lib/http/json-fault.ts'
import { parseJson } from '../../lib/http/whole-pairs.ts'
import { oneOf } from '../../model/schema/fields.ts'
import { assetTextFrom } from '../../server/http/assets.ts'
import { type Endpoint, endpoint } from '../../server/http/endpoint.ts'

/** The path of the MCP server. */
export const mcpPath = '/mcp'
/** Largest message: a lab file of 1 MiB with the files that it names. */
const maxBytes = 4 << 20

/** The MCP server: tools for assistants, over HTTP. */
export const assistantEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'POST',
    path: mcpPath,
    owner: 'self',
    tag: 'reference',
    role: 'read',
    scope: 'shared',
    summary: 'A message to the MCP server: tools with which assistants work on labs',
    description:
      'The Model Context Protocol over streamable HTTP, without sessions: each message is answered by itself. The tools ask this service with the ' +
      'credentials of the request, and may do what their role and projects allow.',
    bodyKind: 'raw',
    query: Type.Object({
      approve: Type.Optional(
        oneOf(['true', 'false'], {
          description: 'true: each change first answers a plan and a number, and is made by the tool confirm',
        }),
      ),
    }),
    replies: {
      200: { description: 'The answer, after reports of progress', media: 'text/event-stream' },
      202: { description: 'A notification was taken' },
    },
    errors: { 400: 'The body is not one message of JSON-RPC', 406: 'The header Accept lacks a media type' },
    async handle({ query, request }, context) {
      const message = await messageIn(request)
      // Only who asks for it needs the protocol: 200 KB of code.
      const { answerMessage } = await import('../../mcp/answer-message.ts')
      const { identity, version, read, assets, assistants, askAsClient, report } = context
      const asksFirst = query.approve === 'true' || assistants.approves()
      return answerMessage(request, message, {
        ...{ version, read, asset: assetTextFrom(assets), report },
        ask: askAsClient,
        role: identity.role,
        who: JSON.stringify([identity.organization ?? '', identity.key, identity.name]),
        confirmKey: asksFirst ? (assistants.confirmKey ?? processKey) : undefined,
        signal: request.signal,
      })
    },
  }),
]

/** One message of JSON. 400, 413. */
async function messageIn(request: Request): Promise<unknown> {
  const text = await readText(request, maxBytes)
  let message: unknown
  try {
    message = parseJson(text)
  } catch {
    throw badRequest(`body: not JSON: ${jsonFault(text)}`)
  }
  if (Array.isArray(message))
    throw badRequest('body: expected one message; several in a list are of older versions of MCP')
  return message
}

let made: CryptoKey | undefined

/** The key of this process, where one process answers all requests. */
async function processKey(): Promise<CryptoKey> {
  if (made !== undefined) return made
  // Requests share the key, not its promise: a Worker must not wait for a promise of another request.
  const key = await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  made ??= key as CryptoKey
  return made
}
