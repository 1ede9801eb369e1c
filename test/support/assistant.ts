import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { expect, onTestFinished } from 'vitest'

/** What a tool answers. */
interface Said {
  readonly verdict: string
  readonly done?: readonly string[]
  readonly not_done?: readonly string[]
  readonly number?: string
  readonly left_out?: readonly string[]
  readonly note?: string
  readonly data?: Readonly<Record<string, unknown>>
}

/** A client of the SDK that has begun to speak, until the test ends. */
export async function speaking(transport: unknown): Promise<Client> {
  const client = new Client({ name: 'test', version: '0' })
  await client.connect(transport as Transport)
  onTestFinished(() => client.close())
  return client
}

/** The same over HTTP. `token`: the credentials. */
export const overHttp = (url: string, token?: string): Promise<Client> => {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return speaking(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
}

/** Calls a tool. An error of it is an answer, too. */
export async function call(client: Client, name: string, given: object = {}, options = {}) {
  const result = await client.callTool({ name, arguments: { ...given } }, undefined, options)
  const [{ text }] = result.content as [{ text: string }]
  expect(JSON.parse(text)).toEqual(result.structuredContent)
  return { said: result.structuredContent as unknown as Said, isError: result.isError === true }
}

/** The reason of a refusal. */
export async function reasonOf(client: Client, name: string, given: object = {}): Promise<string> {
  const { said, isError } = await call(client, name, given)
  expect(isError).toBe(true)
  return `${said.verdict}: ${said.data?.reason}`
}
