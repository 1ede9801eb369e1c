/**
 * Signed texts, which the service verifies without storing them: JSON with an HMAC-SHA-256 over the purpose and the JSON. The form
 * is `{payload}.{mac}`, both base64url without padding (RFC 4648, 5). Any reader of the text can decode the payload. This module
 * checks neither expiry nor revocation: callers put an expiry into the payload, and check it.
 */

/** Most characters of a signed text; longer texts are neither made nor verified. */
export const maxSignedTextLength = 4096

const macBytes = 32
const algorithm = { name: 'HMAC', hash: 'SHA-256' }
const form = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$/

/** Signs a payload that JSON can express, for one purpose, such as `ticket`. Throws RangeError when the text would be too long. */
export async function signText(key: CryptoKey, purpose: string, payload: unknown): Promise<string> {
  const json = JSON.stringify(payload)
  if (json === undefined) throw new TypeError('Only what JSON can express is signed')
  const body = toBase64Url(encode(json))
  if (body.length + 1 + 43 > maxSignedTextLength)
    throw new RangeError(`A signed text has at most ${maxSignedTextLength} characters`)
  const mac = await crypto.subtle.sign(algorithm.name, key, signedBytes(purpose, body))
  return `${body}.${toBase64Url(new Uint8Array(mac))}`
}

/**
 * The payload of a text that one of the keys signed for this purpose; undefined for every other text. It never throws for a bad
 * text. Callers check the types of the members: an older version of the service may have signed the text.
 */
export async function verifySigned(
  keys: readonly CryptoKey[],
  purpose: string,
  text: string,
): Promise<unknown | undefined> {
  if (text.length > maxSignedTextLength) return undefined
  const [, body, macText] = form.exec(text) ?? []
  if (body === undefined || macText === undefined) return undefined
  const mac = fromBase64Url(macText)
  // The last base64url character has two unused bits: only the spelling with zeros is accepted.
  if (mac === undefined || mac.length !== macBytes || toBase64Url(mac) !== macText) return undefined
  for (const key of keys) {
    if (!(await crypto.subtle.verify(algorithm.name, key, mac, signedBytes(purpose, body)))) continue
    const bytes = fromBase64Url(body)
    return bytes && JSON.parse(new TextDecoder().decode(bytes))
  }
  return undefined
}

/**
 * A key for `sign` and `verify`, derived (HKDF-SHA-256) from a secret text or from random bytes. `use` distinguishes keys of the same
 * secret apart. Throws RangeError for a secret of less than 16 bytes.
 */
export async function signingKey(secret: string | Uint8Array<ArrayBuffer>, use: string): Promise<CryptoKey> {
  const bytes = typeof secret === 'string' ? encode(secret) : secret
  if (bytes.length < 16) throw new RangeError('A secret of at least 16 bytes is needed')
  const material = await crypto.subtle.importKey('raw', bytes, 'HKDF', false, ['deriveKey'])
  const info = encode(`patchbay signed text, ${use}`)
  const derivation = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info }
  return crypto.subtle.deriveKey(derivation, material, { ...algorithm, length: 256 }, false, ['sign', 'verify'])
}

/** The body has no NUL, so no purpose and body can be read as another pair. */
const signedBytes = (purpose: string, body: string) => encode(`${purpose}\0${body}`)

const encode = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)

const toBase64Url = (bytes: Uint8Array): string =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))
  } catch {
    return undefined
  }
}
