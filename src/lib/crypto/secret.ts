/** The SHA-256 of a text. */
export async function sha256(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
}

/** Compares digests: the time reveals neither the length nor the first difference. */
export async function sameText(a: string, b: string): Promise<boolean> {
  const [x, y] = await Promise.all([sha256(a), sha256(b)])
  return sameBytes(x, y)
}

/** Compares without a digest, in a time that depends only on the length of `given`. An empty `secret` equals nothing. */
export function isSecret(given: string, secret: string): boolean {
  let difference = given.length ^ secret.length
  for (let index = 0; index < given.length; index++)
    difference |= given.charCodeAt(index) ^ secret.charCodeAt(index % secret.length)
  return difference === 0 && secret.length > 0
}

/** Compares in a time that does not depend on the position of a difference. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length
  for (let index = 0; index < a.length; index++) difference |= (a[index] ?? 0) ^ (b[index] ?? 0)
  return difference === 0
}

export const toHex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')

export const randomHex = (bytes: number): string => toHex(crypto.getRandomValues(new Uint8Array(bytes)))
