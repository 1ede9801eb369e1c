import type { Json } from '../../src/http/endpoint.ts'

export const json: Json = (body, status, headers) =>
  new Response(body, { status, headers: { 'Content-Type': 'application/json', ...headers } })

export function report(error: unknown, requestId: string): void {
  // biome-ignore lint/suspicious/noConsole: the log of a Worker
  console.error(`request ${requestId} failed:`, error)
}
