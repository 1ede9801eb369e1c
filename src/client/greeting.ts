import { Check } from '@sinclair/typebox/value'
import { ignore } from '../async/ignore.ts'
import { conflict } from '../errors/api-error.ts'
import { type ComputeCapabilities, ComputeCapabilities as Schema } from '../model/compute.ts'
import { quoteText, readJson } from './answer.ts'
import type { ComputeAnswer, Send } from './transport.ts'

const maxBytes = 64 * 1024
const maxKinds = 100

/** Something answered, and it is not what this service can work with. */
export class ComputeRefused extends Error {
  override readonly name = 'Refusal'
}

/** Asks a compute what it is. Rejects with Refusal when it is none that can be used, and as `send` does when nothing answers. */
export async function greetCompute(send: Send, version: string, signal: AbortSignal): Promise<ComputeCapabilities> {
  const path = '/v2/compute/capabilities'
  const response = await send({ method: 'GET', path, headers: { Accept: 'application/json' }, body: null, signal })
  const said = await readJson(response, maxBytes)
  requireAnswer(response, said)
  const found = Check(Schema, said) ? said : undefined
  const theirs = majorOf(found?.version)
  if (found === undefined || theirs === undefined) {
    throw new ComputeRefused('it is not a Patchbay or compatible compute: what it answers has no version')
  }
  if (theirs !== majorOf(version)) {
    throw new ComputeRefused(`it runs ${found.version}, this service ${version}: their major versions must be the same`)
  }
  return {
    version: quoteText(found.version ?? ''),
    ...(found.platform !== undefined && { platform: quoteText(found.platform) }),
    node_types: found.node_types.slice(0, maxKinds).map(quoteText),
  }
}

/** Throws for an answer by which no compute can be used, with the reason as a person needs it. */
export function requireAnswer(response: ComputeAnswer, said?: unknown): void {
  const { status } = response
  if (status === 200) return
  response.body?.cancel().catch(ignore('what else the answer says is not wanted'))
  if (status === 401) throw new ComputeRefused('it refuses the user and password')
  if (isRedirect(response)) throw new ComputeRefused('it answers with a redirect, which is not followed')
  if (status === 404) throw new ComputeRefused('it is not a Patchbay or compatible compute: it answered 404')
  const reason = messageOf(said)
  throw new ComputeRefused(`it answered ${status}${reason === undefined ? '' : `: ${reason}`}`)
}

/** 409 for an answer that is about us, and not about what was asked. */
export function requireAboutRequest(response: ComputeAnswer, name: string): void {
  const refuse = (reason: string): never => {
    response.body?.cancel().catch(ignore('what else the answer says is not wanted'))
    throw conflict(`The compute ${name} ${reason}`, { word: 'compute-refuses' })
  }
  const { status } = response
  if (status === 401) refuse('refuses the user and password that it is asked with: change them by PUT')
  if (status === 407) refuse('can only be reached through a proxy that wants credentials')
  if (isRedirect(response)) refuse('answers with a redirect, which is not followed')
}

/** A 308 without an address is no redirect: it says how much of an upload came. Status 0 is how `fetch` may hide one. */
export const isRedirect = ({ status, headers }: ComputeAnswer): boolean =>
  status === 0 || ([301, 302, 303, 307, 308].includes(status) && (status !== 308 || headers.has('location')))

/** What the body of an error says. */
export function messageOf(said: unknown): string | undefined {
  const { message } = (typeof said === 'object' && said !== null ? said : {}) as { message?: unknown }
  return typeof message === 'string' ? quoteText(message) : undefined
}

/** Whether two services of the same major version are not quite the same. */
export const differ = (a: string | null, b: string): boolean => stableOf(a) !== stableOf(b)

const stableOf = (version: string | null): string | undefined => version?.split(/[-+]/, 1)[0]
const majorOf = (version: string | null | undefined): string | undefined => /^\d+(?=\.\d)/.exec(version ?? '')?.[0]
