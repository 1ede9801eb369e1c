import { randomHex, sameBytes, sha256, toHex } from './secret.ts'

/** `pb_{id}_{secret}`: found by its id, and proven by a secret of 256 random bits. */
const form = /^pb_([0-9a-f]{16})_([0-9a-f]{64})$/

export interface TokenParts {
  readonly id: string
  readonly secret: string
}

/** The parts of a text that has the form of a token. */
export function parseToken(text: string): TokenParts | undefined {
  const [, id, secret] = form.exec(text) ?? []
  return id === undefined || secret === undefined ? undefined : { id, secret }
}

export async function newToken(): Promise<{ id: string; text: string; hash: string }> {
  const [id, secret] = [randomHex(8), randomHex(32)]
  return { id, text: `pb_${id}_${secret}`, hash: await hashOf(secret) }
}

/** A secret that is random needs no salt, and no hash that is slow. */
export const hashOf = async (secret: string): Promise<string> => toHex(await sha256(secret))

export async function isSecretOf(hash: string, secret: string): Promise<boolean> {
  const encoder = new TextEncoder()
  return sameBytes(encoder.encode(await hashOf(secret)), encoder.encode(hash))
}
