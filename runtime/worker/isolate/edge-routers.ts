import { setNewest } from '../../../src/lib/async/newest.ts'
import type { Identified, Identity } from '../../../src/model/access/identity.ts'
import { defaultOrganization } from '../../../src/model/organization.ts'
import { type SignedMeaning, SignedTokens } from '../../../src/server/auth/token-text.ts'
import { tokenKey } from '../shared/auth.ts'
import type { Env } from '../shared/env.ts'
import { Objects } from '../shared/objects.ts'
import { EdgeRouter } from './edge-router.ts'

/** Most organizations with a router in this isolate; the least recently used goes. */
const maxRouters = 100
/** How long an isolate remembers that an organization exists, and that it does not, ms, and of how many. */
const knownMs = 10_000
const absentMs = 1000
const maxKnown = 1000

/**
 * The routers of this isolate, one for each organization, so that their caches are apart. The router of `default` authenticates all requests,
 * and hands those of other organizations to their routers.
 */
export class EdgeRouters {
  readonly #env: Env
  readonly #signed: SignedTokens
  readonly #default: EdgeRouter
  readonly #others = new Map<string, EdgeRouter>()
  readonly #known = new Map<string, { readonly exists: boolean; readonly until: number }>()

  constructor(env: Env) {
    this.#env = env
    this.#signed = new SignedTokens(tokenKey(env))
    this.#default = new EdgeRouter(env, defaultOrganization, { signed: this.#signed, all: this })
  }

  answer(request: Request): Promise<Response> {
    return this.#default.answer(request)
  }

  /** The router of an organization whose name was proven by a signature or by the administrator; absent: that of `default`. */
  of(organization = defaultOrganization): EdgeRouter {
    if (organization === defaultOrganization) return this.#default
    const router = this.#others.get(organization) ?? new EdgeRouter(this.#env, organization, { signed: this.#signed })
    setNewest(this.#others, organization, router, maxRouters)
    return router
  }

  /** The identity of a token of any organization. */
  identify(text: string): Identified {
    const signed = this.#signed.remembered(text)
    return signed === undefined ? this.#identifyNew(text) : this.#identifySigned(text, signed)
  }

  /** That of a token of `default` that is at hand. */
  atHand(text: string): Identity | undefined {
    const signed = this.#signed.peek(text)
    return signed && this.#default.tokens.atHand(signed)
  }

  async #identifyNew(text: string): Promise<Identity | undefined> {
    return await this.#identifySigned(text, await this.#signed.read(text))
  }

  #identifySigned(text: string, signed: SignedMeaning | undefined): Identified {
    return this.of(signed?.organization).tokens.identify(text, signed)
  }

  /** The organization that a token with a valid signature names; undefined for `default`, and for every other text. */
  async organizationIn(text: string): Promise<string | undefined> {
    return (await this.#signed.read(text))?.organization
  }

  /** Whether there is an organization; the answer is at most 10 s old. */
  async has(organization: string): Promise<boolean> {
    const known = this.#known.get(organization)
    if (known !== undefined && known.until > Date.now()) return known.exists
    const exists = await new Objects(this.#env).directory().hasOrganization(organization)
    // Another isolate may make it at any time.
    const until = Date.now() + (exists ? knownMs : absentMs)
    setNewest(this.#known, organization, { exists, until }, maxKnown)
    return exists
  }

  /** Called when this isolate may have made an organization: one that was not there is asked for again. */
  forgetAbsent(): void {
    for (const [organization, { exists }] of this.#known) if (!exists) this.#known.delete(organization)
  }
}
