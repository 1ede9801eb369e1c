import { isSecret, sha256, toHex } from '../lib/crypto/secret.ts'
import { badRequest } from '../lib/errors/api-error.ts'
import { compareText } from '../lib/text/compare-text.ts'
import type { ChangePlan } from './parts/tool.ts'

/** How long a number can confirm its change, s. */
export const confirmS = 600

/** A change that somebody is asked to confirm. */
export interface AskedChange {
  /** Whose number it is: the credential and the organization of the caller. */
  readonly who: string
  readonly tool: string
  readonly arguments: unknown
  readonly plan: ChangePlan
}

/** Characters of the digest of a plan, and of a signature, in hexadecimal digits. */
const digits = 20
const form = /^([0-9a-z]{6,8})-([0-9a-f]{20})-([0-9a-f]{20})$/

/**
 * A number for a change. It is not stored: it has its end and the digest of the plan, and is signed together with the caller, the tool
 * and its arguments.
 */
export async function numberFor(change: AskedChange, key: CryptoKey, now = Date.now()): Promise<string> {
  const end = (Math.floor(now / 1000) + confirmS).toString(36)
  const plan = await digestOf(change.plan)
  return `${end}-${plan}-${await signatureOf(change, `${end}-${plan}`, key)}`
}

/** 400 with the reason when a number is not for this change, or too old, or when the plan is not what it was. */
export async function requireNumber(
  number: string,
  change: AskedChange,
  key: CryptoKey,
  now = Date.now(),
): Promise<void> {
  const [, end = '', plan = '', signature = ''] = form.exec(number) ?? []
  const right = await signatureOf(change, `${end}-${plan}`, key)
  if (signature === '' || !isSecret(signature, right))
    throw badRequest(
      'number: it was not given to you for this tool with these arguments; call the tool to get a plan and a number',
    )
  if (Number.parseInt(end, 36) * 1000 < now)
    throw badRequest(`number: it is older than ${confirmS / 60} minutes; call the tool again to get a new one`)
  if (!isSecret(plan, await digestOf(change.plan)))
    throw badRequest(
      'number: what the change would do is not what it was then; call the tool again to get the new plan',
    )
}

async function signatureOf(
  { who, tool, arguments: given }: AskedChange,
  head: string,
  key: CryptoKey,
): Promise<string> {
  const text = JSON.stringify(['confirm', who, tool, ordered(given), head])
  const mac = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(text))
  return toHex(new Uint8Array(mac)).slice(0, digits)
}

async function digestOf(plan: ChangePlan): Promise<string> {
  return toHex(await sha256(JSON.stringify(ordered(plan)))).slice(0, digits)
}

/** A value whose members are in the order of their names. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => compareText(a, b))
  return entries.map(([key, it]) => [key, ordered(it)])
}
