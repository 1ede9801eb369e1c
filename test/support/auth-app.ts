import { type App, createApp } from '../../src/app.ts'
import { computeKey } from '../../src/fleet/pool/computes.ts'
import type { Fleet } from '../../src/fleet/pool/fleet.ts'
import type { LocalHostAgent } from '../../src/host-agent.ts'
import { readHere } from '../../src/importers/readers.ts'
import type { TokenRecord } from '../../src/model/access/access-token.ts'
import type { Verifier } from '../../src/model/access/identity.ts'
import type { Access } from '../../src/server/access/access.ts'
import type { AdmissionParts, AppOptions, RuntimeParts } from '../../src/server/app-options.ts'
import type { RateLimit } from '../../src/server/auth/rate-limit.ts'
import type { TokenStore } from '../../src/server/auth/token-store.ts'
import type { Tokens } from '../../src/server/auth/tokens.ts'

/** A store that is gone with its test, and counts what it is asked. */
export class MemoryTokens implements TokenStore {
  readonly records = new Map<string, TokenRecord>()
  reads = 0

  async list(): Promise<readonly TokenRecord[]> {
    return [...this.records.values()]
  }

  async count(): Promise<number> {
    return this.records.size
  }

  async ofCompute(computeId: string): Promise<readonly TokenRecord[]> {
    const id = computeKey(computeId)
    return [...this.records.values()].filter(
      ({ compute_id }) => compute_id !== undefined && computeKey(compute_id) === id,
    )
  }

  async get(id: string): Promise<TokenRecord | undefined> {
    this.reads += 1
    return this.records.get(id)
  }

  async put(record: TokenRecord): Promise<void> {
    this.records.set(record.token_id, record)
  }

  async replace(record: TokenRecord): Promise<boolean> {
    if (!this.records.has(record.token_id)) return false
    this.records.set(record.token_id, record)
    return true
  }

  async remove(id: string): Promise<void> {
    this.records.delete(id)
  }
}

interface Options {
  readonly access?: Partial<Access>
  readonly verifier?: Verifier
  readonly tokens?: Tokens
  readonly rateLimit?: RateLimit
  readonly sessions?: AdmissionParts['sessions']
  readonly fleet?: Partial<Fleet>
  readonly upgrade?: RuntimeParts['upgrade']
  readonly trace?: AppOptions['trace']
}

/** The app over an agent that knows its version, and can reload. */
export function authApp({ access, verifier, tokens, rateLimit, sessions, fleet, upgrade, trace }: Options): App {
  const agent = {
    host: {
      version: async () => ({ version: '1.2.3', local: false }),
      reloadConfig: async () => ({ changed: [], needs_restart: [] }),
    },
    events: { open: async () => new ReadableStream() },
    nodes: { console: async () => ({}) },
    projects: { list: async () => [] },
  } as unknown as LocalHostAgent
  return createApp({
    agent,
    services: { tokens, ...(fleet !== undefined && { fleet: fleet as Fleet }) },
    version: '1.2.3',
    admission: {
      access: () => ({
        ...{ hosts: new Set(['localhost']), allowedOrigins: new Set(), user: '', password: '', token: '', verifier },
        ...access,
      }),
      ...(rateLimit !== undefined && { rateLimit }),
      ...(sessions !== undefined && { sessions }),
    },
    ...(trace !== undefined && { trace }),
    jsonBytes: 64 * 1024,
    aliases: {},
    runtime: {
      json: (body, status, headers) =>
        new Response(body, { status, headers: { 'Content-Type': 'application/json', ...headers } }),
      upgrade: upgrade ?? (() => new Response('upgraded')),
      assets: async () => undefined,
      read: readHere,
      report: (error) => {
        throw error
      },
    },
  })
}

/** A request of the app, as somebody with that Authorization. */
export async function ask(
  app: App,
  method: string,
  path: string,
  { authorization, body, ...headers }: Record<string, unknown> = {},
): Promise<Response> {
  const all = { ...headers, ...(authorization !== undefined && { authorization }) } as Record<string, string>
  const init = { method, headers: all, ...(body !== undefined && { body: JSON.stringify(body) }) }
  return app.fetch(new Request(`http://localhost${path}`, init))
}

export const bearer = (token: string): string => `Bearer ${token}`
export const basic = (user: string, password: string): string => `Basic ${btoa(`${user}:${password}`)}`
