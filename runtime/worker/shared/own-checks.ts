import { env } from 'cloudflare:workers'
import { sha256, toHex } from '../../../src/lib/crypto/secret.ts'
import { capabilitiesPath } from '../../../src/model/host.ts'
import type { Env } from './env.ts'

/**
 * The header by which the gateway knows its own checks: a gateway that is registered as a compute of itself, in any organization, would ask
 * itself again and again.
 */
const header = 'x-patchbay-gateway'
let value: string | undefined

/** All programs of a deployment have the same. Computes see it: it opens nothing. */
async function ownValue(): Promise<string> {
  const { FLEET_KEY = '' } = env as unknown as Env
  value ??= toHex(await sha256(`checks of computes, ${FLEET_KEY}`))
  return value
}

/** `fetch` whose checks of computes are marked. */
export const markingFetch = (url: string, init: RequestInit): Promise<Response> =>
  url.endsWith(capabilitiesPath) ? marked(url, init) : fetch(url, init)

async function marked(url: string, init: RequestInit): Promise<Response> {
  return fetch(url, { ...init, headers: { ...(init.headers as Record<string, string>), [header]: await ownValue() } })
}

export async function isOwnCheck({ headers }: Request): Promise<boolean> {
  const given = headers.get(header)
  return given !== null && given === (await ownValue())
}
