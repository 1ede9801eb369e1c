import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { sameText, sha256, toHex } from '../../../src/lib/crypto/secret.ts'
import { Role, TokenLimits } from '../../../src/model/access/access-token.ts'
import type { Identity } from '../../../src/model/access/identity.ts'
import type { Env } from './env.ts'
import { isolateHeader } from './feed-message.ts'

/** The header with the identity that an isolate has authenticated, for the object. Headers of that name from clients are removed. */
const admittedHeader = 'x-patchbay-admitted'

/** The header with the id of the lab, for the object of that lab. */
export const projectHeader = 'x-patchbay-project'

const EncodedIdentity = Type.Object({
  name: Type.String(),
  role: Role,
  key: Type.String(),
  ambient: Type.Optional(Type.Boolean()),
  projects: Type.Optional(Type.Array(Type.String())),
  limits: Type.Optional(TokenLimits),
  organization: Type.Optional(Type.String()),
  isOfDeployment: Type.Optional(Type.Boolean()),
})

/** Proves that the sender is an isolate: the proof is derived from a secret of the Worker. */
const proofOf = async ({ FLEET_KEY = '' }: Env): Promise<string> => toHex(await sha256(`admitted, ${FLEET_KEY}`))

/** Passes the identity of a client from an isolate to an object. */
export class Admissions {
  readonly #env: Env
  #proof: string | undefined

  constructor(env: Env) {
    this.#env = env
  }

  /** The request for the object. Without `identity` the object authenticates the request itself. */
  async mark(
    request: Request,
    identity: Identity | undefined,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Request> {
    const headers = new Headers(request.headers)
    headers.delete(isolateHeader)
    headers.delete(admittedHeader)
    if (identity !== undefined) {
      const { name, role, key, ambient, projects, limits, organization, isOfDeployment } = identity
      const encoded = {
        name,
        role,
        key,
        ...(ambient !== undefined && { ambient }),
        ...(projects !== undefined && { projects: [...projects] }),
        ...(limits !== undefined && { limits }),
        ...(organization !== undefined && { organization }),
        ...(isOfDeployment !== undefined && { isOfDeployment }),
      } satisfies Static<typeof EncodedIdentity>
      headers.set(admittedHeader, `${await this.#proofOf()} ${encodeURIComponent(JSON.stringify(encoded))}`)
    }
    for (const [name, value] of Object.entries(more)) headers.set(name, value)
    return new Request(request, { headers })
  }

  /** The identity in a request of an isolate; undefined for any other request. */
  async read(request: Request): Promise<Identity | undefined> {
    const [proof, encoded] = request.headers.get(admittedHeader)?.split(' ') ?? []
    if (proof === undefined || encoded === undefined || !(await sameText(proof, await this.#proofOf())))
      return undefined
    const identity: unknown = JSON.parse(decodeURIComponent(encoded))
    if (!Check(EncodedIdentity, identity)) return undefined
    const { ambient, projects, limits, organization, isOfDeployment, ...rest } = identity
    return {
      ...rest,
      ...(ambient !== undefined && { ambient }),
      ...(projects !== undefined && { projects }),
      ...(limits !== undefined && { limits }),
      ...(organization !== undefined && { organization }),
      ...(isOfDeployment !== undefined && { isOfDeployment }),
    }
  }

  async #proofOf(): Promise<string> {
    this.#proof ??= await proofOf(this.#env)
    return this.#proof
  }
}
