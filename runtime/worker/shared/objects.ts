import { computeKey } from '../../../src/fleet/pool/computes.ts'
import { setNewest } from '../../../src/lib/async/newest.ts'
import { defaultOrganization } from '../../../src/model/organization.ts'
import type { ComputeRpc } from '../compute/rpc.ts'
import type { DirectoryRpc } from '../directory/rpc.ts'
import type { LabRpc } from '../lab/rpc.ts'
import type { Env } from './env.ts'

/** The name of the directory within its organization, as earlier versions named it. */
const directoryName = 'fleet'

/** Most ids of objects of computes that are remembered. */
const maxIds = 1000

/** An object as its callers see it: `Rpc` is the contract that its class implements. */
type Stub<Rpc> = Rpc & Pick<DurableObjectStub, 'fetch'>

const stubOf = <Rpc>(stub: DurableObjectStub) => stub as unknown as Stub<Rpc>

/**
 * The Durable Objects of one organization. Their names begin with the id of the organization and `/`, so that no id of a project or of a
 * compute leads to the object of another organization. The names of the objects of `default` have no such beginning, as in versions before
 * organizations.
 */
export class Objects {
  readonly organization: string
  readonly #env: Pick<Env, 'DIRECTORIES' | 'COMPUTES' | 'PROJECTS'>
  /** Ids of objects of computes: each is a digest of the name, and every request to a joined compute needs it. */
  readonly #ids = new Map<string, DurableObjectId>()

  constructor(env: Pick<Env, 'DIRECTORIES' | 'COMPUTES' | 'PROJECTS'>, organization = defaultOrganization) {
    this.#env = env
    this.organization = organization
  }

  /** The objects of the organization that an object itself belongs to. */
  static around(env: Env, state: DurableObjectState): Objects {
    const [organization] = partsOf(state)
    return new Objects(env, organization)
  }

  /** The name of an object itself within its organization: the id of its lab or its compute. */
  static ownIdOf(state: DurableObjectState): string {
    return partsOf(state)[1]
  }

  /** The organization as tokens and apps know it: undefined for `default`. */
  get named(): string | undefined {
    return this.organization === defaultOrganization ? undefined : this.organization
  }

  directory(): Stub<DirectoryRpc> {
    return stubOf(this.#env.DIRECTORIES.getByName(this.#named(directoryName)))
  }

  /** The object of a lab. */
  project(id: string): Stub<LabRpc> {
    return stubOf(this.#env.PROJECTS.getByName(this.#named(id)))
  }

  /** The object of a compute. `locationHint`: where it is placed when it is new. */
  compute(id: string, locationHint?: DurableObjectLocationHint): Stub<ComputeRpc> {
    const options = locationHint === undefined ? undefined : { locationHint }
    return stubOf(this.#env.COMPUTES.get(this.#idOf(computeKey(id)), options))
  }

  #idOf(compute: string): DurableObjectId {
    const known = this.#ids.get(compute)
    if (known !== undefined) return known
    const made = this.#env.COMPUTES.idFromName(this.#named(compute))
    setNewest(this.#ids, compute, made, maxIds)
    return made
  }

  /** Requires a name without a slash: with one it would name an object of another organization. */
  #named(name: string): string {
    if (name.includes('/')) throw new Error('The name of an object has no slash')
    return this.organization === defaultOrganization ? name : `${this.organization}/${name}`
  }
}

/** The organization of an object, and its name there. */
function partsOf({ id: { name } }: DurableObjectState): [organization: string, name: string] {
  if (name === undefined) throw new Error('An object of the gateway has a name')
  const slash = name.indexOf('/')
  return slash === -1 ? [defaultOrganization, name] : [name.slice(0, slash), name.slice(slash + 1)]
}
