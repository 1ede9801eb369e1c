import type { App } from '../../../../src/app.ts'
import { noJoinToken } from '../../../../src/endpoints/v2/fleet/join.ts'
import { mapLimit } from '../../../../src/lib/async/map-limit.ts'
import { ApiError, retryLater } from '../../../../src/lib/errors/api-error.ts'
import type { Identity } from '../../../../src/model/access/identity.ts'
import { defaultOrganization, type OrganizationLimits, withoutLimits } from '../../../../src/model/organization.ts'
import { bearerOf } from '../../../../src/server/access/credentials.ts'
import { RateLimit } from '../../../../src/server/auth/rate-limit.ts'
import { parseToken } from '../../../../src/server/auth/token-text.ts'
import type { Tokens } from '../../../../src/server/auth/tokens.ts'
import type { OrganizationTickets } from '../../../../src/server/http/tickets.ts'
import {
  noSuchOrganization,
  type OrganizationContent,
  type OrganizationStates,
  Organizations,
} from '../../../../src/server/organizations/organizations.ts'
import type { AdmittedRequest } from '../../../../src/server/steps/delegate-request.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'
import type { Log } from '../../os/log/log.ts'
import { type OrganizationAuth, openOrganizationAuth } from '../auth/open-auth.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { GatewayLabOptions, GatewayLabRuntime } from '../lab-runtime.ts'
import { OrganizationFiles } from './organization-files.ts'

/** Most organizations of one gateway: each has its computes and labs in the memory of the process. */
const maxOrganizations = 100
/** Organizations that are opened at the same time at the start. */
const openedTogether = 4

/** An organization whose computes are connected and whose labs are open. */
interface OpenOrganization extends OrganizationAuth {
  readonly labRuntime: GatewayLabRuntime
  readonly app: App
  close(): Promise<void>
}

export interface NodeOrganizationsOptions {
  readonly config: LoadedConfig
  readonly log: Log
  readonly records: ServiceRecords
  readonly tickets: OrganizationTickets
  /** Opens the computes and labs in the records of an organization. */
  readonly openGateway: (options: GatewayLabOptions) => Promise<GatewayLabRuntime>
  /** The app of an organization. */
  readonly appOf: (labRuntime: GatewayLabRuntime, tokens: Tokens, id: string) => App
}

/**
 * The organizations of a gateway beside `default`. Each has a fleet, labs, tokens and an app of its own over the records in its own
 * directory; nothing is shared but the process. They are opened at the start of the service, or by the first request.
 */
export class NodeOrganizations implements OrganizationStates {
  /** What the endpoints of the administrator change. */
  readonly all: Organizations
  readonly #options: NodeOrganizationsOptions
  readonly #files: OrganizationFiles
  readonly #open = new Map<string, Promise<OpenOrganization>>()
  /** By organization. */
  readonly #rates = new RateLimit(
    (id) => {
      const { requests_per_s: perSecond } = this.limitsOf(id)
      return { perSecond, burst: 3 * perSecond }
    },
    Date.now,
    (id) => `the credentials of the organization ${id}`,
  )
  /** Those that are being deleted. */
  readonly #ending = new Set<string>()
  #isClosed = false

  private constructor(options: NodeOrganizationsOptions, files: OrganizationFiles) {
    this.#options = options
    this.#files = files
    this.all = new Organizations({ store: files, states: this, max: maxOrganizations })
  }

  static async open(options: NodeOrganizationsOptions): Promise<NodeOrganizations> {
    const { records, config } = options
    return new NodeOrganizations(options, await OrganizationFiles.open(records, () => config.current.min_free_space_mb))
  }

  /** Opens all of them: the labs of the run before, and those that end at a time. */
  async start(): Promise<void> {
    await mapLimit(
      (await this.#files.list()).filter(({ organization_id: id }) => id !== defaultOrganization),
      ({ organization_id: id }) => this.#of(id).catch(() => undefined),
      openedTogether,
    )
  }

  /** The tokens and the ended sessions of one; undefined for one that is not there. */
  async authOf(id: string): Promise<OrganizationAuth | undefined> {
    return this.#has(id) ? this.#of(id) : undefined
  }

  /** What an organization may use, as it is now. */
  limitsOf(id: string): OrganizationLimits {
    return this.#files.find(id)?.organization ?? withoutLimits
  }

  /** Counts a request; 429 above the limit of its organization. The administrator of the deployment gets in whatever others do. */
  count({ key, isOfDeployment, organization = defaultOrganization }: Identity): void {
    if (key !== '' && isOfDeployment !== true) this.#rates.consume(organization)
  }

  /** The answer of the organization that a request belongs to; undefined for one of `default`, or of the deployment. */
  async answer({ request, endpoint, identity }: AdmittedRequest): Promise<Response | undefined> {
    if (endpoint.ofDeployment === true) return undefined
    const id = endpoint.joins === true ? parseToken(bearerOf(request) ?? '')?.organization : identity.organization
    if (id === undefined) return undefined
    if (endpoint.joins === true) {
      const auth = await this.authOf(id)
      if ((await auth?.tokens.joinTokens.check(bearerOf(request) ?? '')) === undefined) throw noJoinToken()
    }
    const { app } = await this.#of(id)
    return app.fetch(request, identity)
  }

  async content(id: string): Promise<OrganizationContent> {
    return (await this.#of(id)).labRuntime.content()
  }

  /** Its directory is all that it needs. */
  async made(): Promise<void> {}

  /** The limits are read from the files when they count. */
  async changed(): Promise<void> {}

  async remove(id: string, forget: () => Promise<void>): Promise<void> {
    this.#ending.add(id)
    try {
      await this.#end(id)
      await forget()
    } finally {
      this.#ending.delete(id)
    }
    this.#options.tickets.drop(id)
    const { log } = this.#options
    await this.#files
      .removeFiles(id)
      .catch((err: unknown) =>
        log.warn({ err, organization: id }, 'files of a deleted organization are removed at the next start'),
      )
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#open.keys()].map((id) => this.#end(id)))
  }

  #has(id: string): boolean {
    return this.#files.find(id) !== undefined && !this.#ending.has(id)
  }

  async #end(id: string): Promise<void> {
    const open = this.#open.get(id)
    this.#open.delete(id)
    await open?.then(
      (it) => it.close(),
      () => undefined,
    )
  }

  #of(id: string): Promise<OpenOrganization> {
    const known = this.#open.get(id)
    if (known !== undefined) return known
    const opening = this.#opened(id)
    this.#open.set(id, opening)
    opening.catch((error: unknown) => {
      // The next request tries again.
      if (this.#open.get(id) === opening) this.#open.delete(id)
      if (!(error instanceof ApiError))
        this.#options.log.error({ err: error, organization: id }, 'an organization could not be opened')
    })
    return opening.catch((error: unknown) => {
      throw error instanceof ApiError
        ? error
        : retryLater(503, `The organization ${id} cannot be opened; the log of the service says why`, 10, error)
    })
  }

  async #opened(id: string): Promise<OpenOrganization> {
    const { config, log, appOf, openGateway } = this.#options
    const found = this.#files.find(id)
    if (found === undefined) throw noSuchOrganization(id)
    if (this.#isClosed || this.#ending.has(id)) throw retryLater(503, `The organization ${id} is shutting down`, 5)
    const { records } = found
    const limits = () => this.limitsOf(id)
    const { tokens, keeper } = await openOrganizationAuth(records, id)
    const labRuntime = await openGateway({ config, log, records, tokens, limits, organization: id })
    return {
      tokens,
      keeper,
      labRuntime,
      app: appOf(labRuntime, tokens, id),
      async close() {
        await labRuntime.closeApplianceVm()
        await labRuntime.close()
      },
    }
  }
}
