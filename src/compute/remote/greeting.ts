import { Check } from '@sinclair/typebox/value'
import { ignore } from '../../lib/async/ignore.ts'
import { conflict } from '../../lib/errors/api-error.ts'
import { type ComputeCapabilities, ComputeCapabilities as Schema } from '../../model/compute.ts'
import { capabilitiesPath } from '../../model/host.ts'
import { ComputeLabel } from '../../model/placement.ts'
import { quoteText, readJson } from './answer.ts'
import type { ComputeAnswer, Send } from './transport.ts'

const maxBytes = 64 * 1024
const maxKinds = 100
const maxLabels = 100

/** The program that answered is not a compute that this service can use. */
export class ComputeRefused extends Error {
  override readonly name = 'Refusal'
}

/** The capabilities of a compute. Rejects with ComputeRefused for another program, and as `send` does without an answer. */
export async function greetCompute(send: Send, version: string, signal: AbortSignal): Promise<ComputeCapabilities> {
  const response = await send({
    method: 'GET',
    path: capabilitiesPath,
    headers: { Accept: 'application/json' },
    body: null,
    signal,
  })
  const said = await readJson(response, maxBytes)
  requireAnswer(response, said)
  const found = Check(Schema, said) ? said : undefined
  const theirs = majorOf(found?.version)
  if (found === undefined || theirs === undefined) {
    throw new ComputeRefused('it is not a Patchbay or compatible compute: its answer has no version')
  }
  if (theirs !== majorOf(version)) {
    throw new ComputeRefused(`it runs ${found.version}, this service ${version}: their major versions must be the same`)
  }
  return {
    version: quoteText(found.version ?? ''),
    ...(found.platform !== undefined && { platform: quoteText(found.platform) }),
    node_types: found.node_types.slice(0, maxKinds).map(quoteText),
    ...(found.labels !== undefined && {
      labels: found.labels.filter((label) => Check(ComputeLabel, label)).slice(0, maxLabels),
    }),
  }
}

/** Throws ComputeRefused, with the reason for the user, unless the status is 200. */
export function requireAnswer(response: ComputeAnswer, said?: unknown): void {
  const { status } = response
  if (status === 200) return
  response.body?.cancel().catch(ignore('the rest of the answer is not needed'))
  if (status === 401) throw new ComputeRefused('it refuses the user and password')
  if (isRedirect(response)) throw new ComputeRefused('it answered with a redirect, which is not followed')
  if (status === 404) throw new ComputeRefused('it is not a Patchbay or compatible compute: it answered 404')
  const reason = messageOf(said)
  throw new ComputeRefused(`it answered ${status}${reason === undefined ? '' : `: ${reason}`}`)
}

/** 409 for an answer about the access of this service, and not about the request. */
export function requireAboutRequest(response: ComputeAnswer, name: string): void {
  const { status } = response
  if (status >= 200 && status < 300) return
  const refuse = (reason: string): never => {
    response.body?.cancel().catch(ignore('the rest of the answer is not needed'))
    throw conflict(`The compute ${name} ${reason}`, { code: 'compute-refuses' })
  }
  if (status === 401) refuse('refuses the user and password of its record: change them with a PUT of the compute')
  if (status === 407) refuse('can only be reached through a proxy that requires credentials')
  if (isRedirect(response)) refuse('answered with a redirect, which is not followed')
}

/** A 308 without Location is not a redirect: it reports the progress of an upload. `fetch` may hide a redirect as status 0. */
export const isRedirect = ({ status, headers }: ComputeAnswer): boolean =>
  status === 0 || ([301, 302, 303, 307, 308].includes(status) && (status !== 308 || headers.has('location')))

/** The message in the body of an error. */
export function messageOf(said: unknown): string | undefined {
  const { message } = (typeof said === 'object' && said !== null ? said : {}) as { message?: unknown }
  return typeof message === 'string' ? quoteText(message) : undefined
}

/** Whether two services of the same major version are not quite the same. */
export const differ = (a: string | null, b: string): boolean => stableOf(a) !== stableOf(b)

const stableOf = (version: string | null): string | undefined => version?.split(/[-+]/, 1)[0]
const majorOf = (version: string | null | undefined): string | undefined => /^\d+(?=\.\d)/.exec(version ?? '')?.[0]
