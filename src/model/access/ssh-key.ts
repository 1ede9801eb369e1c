import { type Static, Type } from '@sinclair/typebox'
import { toHex } from '../../lib/crypto/secret.ts'
import { badRequest } from '../../lib/errors/api-error.ts'
import { closedSchema, objectSchema } from '../schema/fields.ts'

/** Most public keys of a token. */
export const maxSshKeys = 16
/** An RSA key of 16,384 bits has 2,800 characters. */
const maxKeyText = 8192
const leastRsaBits = 2048

/** A public key whose owner logs in by SSH with the rights of a token. */
export type SshKey = Static<typeof SshKey>
export const SshKey = objectSchema('SshKey', 'A public key, by which SSH clients log in with the rights of a token', {
  key_id: Type.String({ description: 'The first 16 hexadecimal digits of the SHA-256 of the key' }),
  fingerprint: Type.String({ description: 'As "ssh-keygen -l" shows it: SHA256:...' }),
  public_key: Type.String({ description: 'Type and key, as in a file of OpenSSH' }),
  comment: Type.String({ description: 'What follows the key in its file; empty: nothing' }),
  added_at: Type.String({ description: 'Time in UTC (RFC 3339)' }),
})

export const SshKeyAdd = closedSchema('SshKeyAdd', 'A public key for a token', {
  public_key: Type.String({
    minLength: 1,
    maxLength: maxKeyText,
    description: 'The line of a public key file of OpenSSH, such as ~/.ssh/id_ed25519.pub: type, key and comment',
  }),
})

/** The parts of a public key. */
export type ParsedSshKey = Pick<SshKey, 'key_id' | 'fingerprint' | 'public_key' | 'comment'>

/** The key of a line such as `ssh-ed25519 AAAA... user@host`. 400 for anything else, and for keys that are not accepted. */
export async function parseSshKey(text: string): Promise<ParsedSshKey> {
  const line = text.trim()
  if (/PRIVATE KEY-/.test(line)) throw wrong('this is a private key, which stays with its owner; give the file .pub')
  if (line.startsWith('---- BEGIN SSH2'))
    throw wrong('this is in the format of RFC 4716; "ssh-keygen -i -f FILE" shows it as a line of OpenSSH')
  if (/[\r\n]/.test(line)) throw wrong('expected one line with one key')
  const [type = '', base64 = '', ...comment] = line.split(/\s+/)
  const [what, isOne] = (Object.hasOwn(keyTypes, type) ? keyTypes[type] : undefined) ?? []
  if (what === undefined || isOne === undefined) {
    const types = Object.keys(keyTypes).join(', ')
    throw wrong(`expected a line that begins with one of ${types}; it begins with ${JSON.stringify(type.slice(0, 40))}`)
  }
  const bytes = bytesOf(base64)
  const [name, ...fields] = (bytes && fieldsOf(bytes)) ?? []
  if (bytes === undefined || new TextDecoder().decode(name) !== type || !isOne(fields))
    throw wrong(`what follows ${type} is not such a key: expected ${what}, in base64`)
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as BufferSource))
  return {
    key_id: toHex(digest).slice(0, 16),
    fingerprint: `SHA256:${base64Of(digest).replace(/=+$/, '')}`,
    public_key: `${type} ${base64Of(bytes)}`,
    comment: comment.join(' ').slice(0, 255),
  }
}

const wrong = (what: string) => badRequest(`public_key: ${what}`)

type Fields = readonly Uint8Array[]

/** The types of keys that are accepted: what a key is, and whether the fields after its type are one. */
const keyTypes: Readonly<Record<string, readonly [what: string, isOne: (fields: Fields) => boolean]>> = {
  // RFC 8709, 4
  'ssh-ed25519': ['32 bytes', ([key, ...more]) => key?.length === 32 && more.length === 0],
  // RFC 5656, 3.1: an uncompressed point.
  'ecdsa-sha2-nistp256': ['a point of 65 bytes', (fields) => isPoint(fields, 'nistp256', 65)],
  'ecdsa-sha2-nistp384': ['a point of 97 bytes', (fields) => isPoint(fields, 'nistp384', 97)],
  'ecdsa-sha2-nistp521': ['a point of 133 bytes', (fields) => isPoint(fields, 'nistp521', 133)],
  // RFC 4253, 6.6: exponent and modulus.
  'ssh-rsa': [
    `an exponent and a modulus of at least ${leastRsaBits} bits`,
    ([, modulus, ...more]) => modulus !== undefined && bitsOf(modulus) >= leastRsaBits && more.length === 0,
  ],
}

const isPoint = ([curve, point, ...more]: Fields, name: string, length: number): boolean =>
  new TextDecoder().decode(curve) === name && point?.length === length && more.length === 0

/** The length of a number without the zeros before it. */
function bitsOf(number: Uint8Array): number {
  const first = number.findIndex((byte) => byte !== 0)
  return first === -1 ? 0 : 8 * (number.length - first) - Math.clz32(number[first] ?? 0) + 24
}

/** The strings of which a key consists (RFC 4251, 5); undefined where they do not fill it. */
function fieldsOf(bytes: Uint8Array): Uint8Array[] | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const fields: Uint8Array[] = []
  for (let at = 0; at < bytes.length; ) {
    if (at + 4 > bytes.length) return undefined
    const end = at + 4 + view.getUint32(at)
    if (end > bytes.length) return undefined
    fields.push(bytes.subarray(at + 4, end))
    at = end
  }
  return fields
}

function bytesOf(base64: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

const base64Of = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))
