import { ignore } from '../lib/async/ignore.ts'
import { type RelayedAnswer, responseOf } from '../lib/http/relayed-answer.ts'
import { upgradeToken } from '../lib/http/socket.ts'
import type { RuntimeParts } from './app-options.ts'
import type { Unfinished } from './http/dialect.ts'
import { jsonHeaders } from './http/json-headers.ts'

/**
 * The headers that every answer of the service to a client has, whoever makes it, but for a 101 and an image from R2
 * (docs/architecture.md, "Answers that the steps do not give").
 */
export const serviceHeaders = (version: string, requestId: string): Record<string, string> => ({
  Server: `patchbay/${version}`,
  'X-Request-Id': requestId,
})

/** The Response of an answer, with these headers. */
export function finish(
  answer: Unfinished,
  headers: Record<string, string>,
  { json, relayed = responseOf }: Pick<RuntimeParts, 'json' | 'relayed'>,
): Response {
  if ('content' in answer)
    return relayed({ status: answer.status, headers: { ...answer.headers, ...headers }, content: answer.content })
  if (!(answer instanceof Response)) {
    if (answer.body === undefined) return new Response(null, { status: answer.status, headers })
    return json(textOf(answer.body), answer.status, headers)
  }
  // A websocket's token must stay the object that the runtime knows, and has no headers to set.
  if (answer.status === 101 || isUpgradeToken(answer)) return answer
  for (const [name, value] of Object.entries(headers)) {
    // An answer may vary by more than its origin.
    if (name === 'Vary') answer.headers.append(name, value)
    else answer.headers.set(name, value)
  }
  return answer
}

/** The same for a tunnel, which needs no Response. */
export function finishRelayed(
  answer: Unfinished,
  headers: Record<string, string>,
  runtime: Pick<RuntimeParts, 'json' | 'relayed'>,
): Response | RelayedAnswer {
  if (answer instanceof Response) return finish(answer, headers, runtime)
  if ('content' in answer) return { ...answer, headers: { ...answer.headers, ...headers } }
  const { status, body } = answer
  if (body === undefined) return { status, headers, content: null }
  const content = new TextEncoder().encode(`${JSON.stringify(body)}\n`)
  const own = { ...jsonHeaders, 'Content-Length': String(content.byteLength) }
  return { status, headers: { ...own, ...headers }, content }
}

/** Whether a Response stands for a websocket that the runtime opens. */
export const isUpgradeToken = (response: Response): boolean => response.headers.has(upgradeToken)

/** The answer to HEAD. */
export function withoutBody(response: Response): Response {
  response.body?.cancel().catch(ignore('the body is not sent'))
  return new Response(null, { status: response.status, headers: response.headers })
}

const texts = new WeakMap<object, string>()

/** The text of a body. That of a frozen one, which is a record without objects in it, is kept. The line end is for people with curl. */
function textOf(body: unknown): string {
  const isKept = typeof body === 'object' && body !== null && Object.isFrozen(body)
  const known = isKept ? texts.get(body) : undefined
  if (known !== undefined) return known
  const text = `${JSON.stringify(body)}\n`
  if (isKept) texts.set(body, text)
  return text
}
