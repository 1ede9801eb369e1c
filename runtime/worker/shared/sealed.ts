import { ignore } from '../../../src/lib/async/ignore.ts'

/** Prefix of the sealed texts of this version. */
const mark = 'v1.'
const nonceBytes = 12

/**
 * Encrypts secrets for the database: AES-GCM under a key that is derived from a secret of the Worker (HKDF, SHA-256). Each text is bound
 * to its owner (additional data), so that nobody with write access to the database can move it to another compute.
 */
export class Sealer {
  readonly #key: Promise<CryptoKey>

  constructor(secret: string) {
    this.#key = keyOf(secret)
    this.#key.catch(ignore('the first call of seal or open gets the error'))
  }

  async seal(text: string, owner: string): Promise<string> {
    const nonce = crypto.getRandomValues(new Uint8Array(nonceBytes))
    const content = await crypto.subtle.encrypt(algorithm(nonce, owner), await this.#key, encode(text))
    return mark + base64(new Uint8Array([...nonce, ...new Uint8Array(content)]))
  }

  /** Rejects when the text was sealed under another secret or for another owner, or was changed. */
  async open(sealed: string, owner: string): Promise<string> {
    if (!sealed.startsWith(mark)) throw new Error('it was sealed by another version')
    const bytes = Uint8Array.from(atob(sealed.slice(mark.length)), (char) => char.charCodeAt(0))
    const nonce = bytes.slice(0, nonceBytes)
    const content = await crypto.subtle.decrypt(algorithm(nonce, owner), await this.#key, bytes.slice(nonceBytes))
    return new TextDecoder().decode(content)
  }
}

async function keyOf(secret: string): Promise<CryptoKey> {
  if (secret.length < 32) throw new Error('FLEET_KEY: a secret of at least 32 characters is needed')
  const material = await crypto.subtle.importKey('raw', encode(secret), 'HKDF', false, ['deriveKey'])
  const derivation = {
    name: 'HKDF',
    hash: 'SHA-256',
    salt: new Uint8Array(),
    info: encode('patchbay fleet credentials'),
  }
  const aes = { name: 'AES-GCM', length: 256 }
  return crypto.subtle.deriveKey(derivation, material, aes, false, ['encrypt', 'decrypt'])
}

const algorithm = (iv: Uint8Array, owner: string) => ({
  name: 'AES-GCM',
  iv,
  additionalData: encode(owner.toLowerCase()),
})
const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
const base64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))
