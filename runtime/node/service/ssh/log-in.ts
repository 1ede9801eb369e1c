import { createHash } from 'node:crypto'
import ssh2, { type AuthContext, type PublicKeyAuthContext } from 'ssh2'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import type { Identity } from '../../../../src/model/access/identity.ts'
import type { LoginLimit } from '../../../../src/server/auth/login-limit.ts'
import type { Tokens } from '../../../../src/server/auth/tokens.ts'
import { consoleOfUser } from './console-name.ts'

/** Most keys that a client may try on one connection: an agent offers all that it has. */
const maxTries = 10

export interface LogInOptions {
  readonly logins: LoginLimit
  /** The tokens of an organization; undefined: `default`. */
  readonly tokensOf: (organization: string | undefined) => Promise<Tokens | undefined>
}

/** The log-in of one connection: by the public key of a token, and by nothing else. */
export class SshLogIn {
  readonly #options: LogInOptions
  readonly #address: string
  #tries = 0
  #proven: { readonly user: string; readonly publicKey: string } | undefined

  constructor(options: LogInOptions, address: string) {
    this.#options = options
    this.#address = address
  }

  /** The user name with which the client has logged in. */
  get user(): string {
    return this.#proven?.user ?? ''
  }

  /** The identity of the client; undefined before the log-in, and when its token or key was removed since. */
  async identity(): Promise<Identity | undefined> {
    return this.#proven && this.#identify(this.#proven.user, this.#proven.publicKey)
  }

  /** Answers an attempt; false: there were too many, and the connection should end. */
  async answer(attempt: AuthContext): Promise<boolean> {
    if (attempt.method !== 'publickey') {
      attempt.reject(['publickey'])
      return true
    }
    this.#tries += 1
    const publicKey = textOf(attempt)
    const name = createHash('sha256').update(attempt.key.data).digest('hex')
    const login = { kind: 'ssh', address: this.#address, name, secret: publicKey } as const
    try {
      const found = await this.#options.logins.attempt(login, async () => {
        const identity = await this.#identify(attempt.username, publicKey)
        // Before the client signs, it asks whether the key would do (RFC 4252, 7).
        return attempt.signature === undefined || isSigned(attempt, publicKey) ? identity : undefined
      })
      if (found === undefined) attempt.reject(['publickey'])
      else {
        if (attempt.signature !== undefined) this.#proven = { user: attempt.username, publicKey }
        attempt.accept()
      }
      return found !== undefined || this.#tries < maxTries
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 429) throw error
      // Too many wrong log-ins from that address: the limit has logged it.
      attempt.reject([])
      return false
    }
  }

  async #identify(user: string, publicKey: string): Promise<Identity | undefined> {
    const tokens = await this.#options.tokensOf(consoleOfUser(user)?.organization)
    return tokens?.keys?.identify(publicKey)
  }
}

/** The key as `SshKey.public_key` has it. */
const textOf = ({ key: { algo, data } }: PublicKeyAuthContext): string => `${algo} ${data.toString('base64')}`

function isSigned({ blob, signature, hashAlgo }: PublicKeyAuthContext, publicKey: string): boolean {
  if (blob === undefined || signature === undefined) return false
  // RSA with SHA-1 is broken (RFC 8332); the other types have one hash.
  if (publicKey.startsWith('ssh-rsa ') && hashAlgo === undefined) return false
  const key = ssh2.utils.parseKey(publicKey)
  return !(key instanceof Error) && key.verify(blob, signature, hashAlgo) === true
}
