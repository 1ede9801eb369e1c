import { waitUntil } from 'cloudflare:workers'
import { type App, createApp, handleSteps } from '../../../src/app.ts'
import type { GatewayEvents } from '../../../src/fleet/events/events.ts'
import { loadOf } from '../../../src/fleet/gateway/host.ts'
import type { ReplicateImage } from '../../../src/fleet/images/image-copies.ts'
import type { UploadDigests } from '../../../src/fleet/images/image-digests.ts'
import { fleetMembers } from '../../../src/fleet/members/fleet-members.ts'
import type { FleetMembers } from '../../../src/fleet/members/members.ts'
import { Fleet } from '../../../src/fleet/pool/fleet.ts'
import { notJoined } from '../../../src/fleet/pool/tunnels.ts'
import type { StudentLabWork, WorkFor } from '../../../src/labs/classes/student-lab.ts'
import type { ComputePool } from '../../../src/labs/computes/compute-pool.ts'
import type { DirectoryRegistry } from '../../../src/labs/directory-registry.ts'
import type { MoveOptions } from '../../../src/labs/moves/move.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import type { Load } from '../../../src/model/host.ts'
import type { MetricFamily } from '../../../src/model/metrics.ts'
import type { OrganizationLimits } from '../../../src/model/organization.ts'
import { Tokens } from '../../../src/server/auth/tokens.ts'
import { composeDirectory, type LabsElsewhere } from '../../../src/server/compose.ts'
import { RequestMetrics } from '../../../src/server/http/request-metrics.ts'
import type { TicketOffice } from '../../../src/server/http/tickets.ts'
import { noSuchOrganization, type Organizations } from '../../../src/server/organizations/organizations.ts'
import { matchOf, type RequestStep } from '../../../src/server/request-context.ts'
import { openAuth, tokenKey } from '../shared/auth.ts'
import type { Env } from '../shared/env.ts'
import { commonAdmission, commonOptions, gatewayHost, reportDefect, warn } from '../shared/host.ts'
import { ImageBucket } from '../shared/image-bucket.ts'
import { ImageDigestTable, workerHasher } from '../shared/image-digest-table.ts'
import { LabTable } from '../shared/lab-table.ts'
import { objectLimits } from '../shared/object-limits.ts'
import { resultOf } from '../shared/object-reply.ts'
import type { Objects } from '../shared/objects.ts'
import { reaching } from '../shared/reaching.ts'
import { encode } from '../shared/rpc-json.ts'
import { Sealer } from '../shared/sealed.ts'
import type { BatchedWrites } from './batched-writes.ts'
import { BookmarkTable } from './bookmark-table.ts'
import { JobTable } from './job-table.ts'
import { PendingReplicationsTable } from './pending-replications.ts'
import { PlacementTable } from './placement-table.ts'
import { PresentTable } from './present-table.ts'
import type { PushedFeeds } from './pushed-feeds.ts'
import { RegistryTable } from './registry-table.ts'
import { ReportedProjectsTable } from './reported-projects.ts'
import { ReportedStates, sharedRegistry } from './reported-states.ts'
import { StateTable } from './state-table.ts'
import { TokenTable } from './token-table.ts'
import type { TunnelTable } from './tunnel-table.ts'

export interface WorkerGateway {
  readonly app: App
  readonly fleet: Fleet
  readonly states: ReportedStates
  readonly placements: PlacementTable
  readonly reportedProjects: ReportedProjectsTable
  /** Ids of the projects, labs among them, as the limit of the organization counts them. */
  readonly projects: () => ReadonlySet<string>
  readonly tokens: TokenTable
  /** Counts of requests, of the object and of isolates. */
  readonly requests: RequestMetrics
  readonly events: GatewayEvents
  readonly replicateImage: ReplicateImage
  /** See `Gateway.uploads`. */
  readonly uploads: UploadDigests | undefined
  /** Tries again to copy images to the bucket whose copy broke off and whose next attempt is due. */
  readonly keepDue: () => Promise<void>
  /** Images apart from the computes; undefined without a bucket. */
  readonly images: ImageBucket | undefined
  /** The heads of all labs; each lab has an object of its own. */
  readonly labs: DirectoryRegistry
  /** The computes of labs. */
  readonly computes: ComputePool
  readonly labStore: LabTable
  readonly jobs: JobTable
  /** The load of the compute of a project, or of all computes; undefined while unknown. */
  load(projectId: string | undefined): Promise<Load | undefined>
}

export interface GatewayParts {
  readonly storage: DurableObjectStorage
  readonly writes: BatchedWrites
  readonly objects: Objects
  readonly tunnels: TunnelTable
  readonly pushedFeeds: PushedFeeds
  readonly tickets: TicketOffice
  /** Of the organization; undefined: it is `default` without limits, or was deleted. */
  readonly limits: () => OrganizationLimits | undefined
  /** Those of the deployment, at the object of `default`. */
  readonly organizations: Organizations | undefined
  readonly metrics: () => Promise<MetricFamily[]>
  /** Called when a token was revoked. */
  readonly revoked: (tokenId: string) => void
}

/** The gateway over the tables of the Durable Object. */
export async function openGateway(env: Env, parts: GatewayParts): Promise<WorkerGateway> {
  const { storage, writes, objects, tickets, metrics, revoked, limits, organizations } = parts
  const { named } = objects
  const { sql } = storage
  const store = new TokenTable(sql, warn, revoked)
  const tokens = new Tokens({ store, key: tokenKey(env), organization: named })
  const { access, rateLimit } = openAuth(env, (token) => tokens.identify(token))
  const stateTable = new StateTable(sql, writes)
  const fleet = await openFleet(env, parts, { stateTable, tokens })
  const states = new ReportedStates(fleet, stateTable, objects)
  const placements = new PlacementTable(sql)
  const { images, digests, pending } = openImages(env, parts, fleet)
  const reportedProjects = new ReportedProjectsTable(sql, placements)
  const members = membersOf(fleet, reportedProjects, parts)
  const labStore = new LabTable(storage)
  const jobs = new JobTable(sql, objects)
  const { gateway, registry, computes, services, projects } = await composeDirectory({
    fleet,
    members,
    placements,
    maxProjects: () => limits()?.max_projects ?? 0,
    host: gatewayHost(metrics),
    digests: { store: digests, newHasher: workerHasher },
    ...(images !== undefined && { keeping: { kept: images, unkept: pending, waitUntil } }),
    bookmarks: new BookmarkTable(sql),
    warn,
    labs: {
      store: labStore,
      limits: () => objectLimits,
      warn,
      report: reportDefect,
      elsewhere: new LabObjects(objects, jobs),
      present: new PresentTable(sql, writes),
    },
  })
  const requests = new RequestMetrics()
  const app = createApp({
    ...commonOptions(env, named),
    requests,
    agent: gateway.agent,
    services: { ...services, tokens, organizations },
    admission: { ...commonAdmission, access, tickets, rateLimit },
    steps: { handle: [awaitStates(parts, states), ...handleSteps] },
  })
  const keepDue = async () => {
    await states.known()
    for (const sha256 of pending.due()) {
      const image = digests.named(sha256)
      if (image !== undefined) gateway.keep(image, true)
    }
  }
  return {
    app,
    fleet,
    states,
    reportedProjects,
    placements,
    projects,
    tokens: store,
    requests,
    events: gateway.events,
    replicateImage: gateway.replicateImage,
    uploads: gateway.uploads,
    keepDue,
    images,
    async load(projectId) {
      if (projectId === undefined) return loadOf(members)
      const compute = await placements.get(projectId)
      return compute === undefined ? undefined : (await members.find(compute))?.load
    },
    labs: registry,
    computes,
    labStore,
    jobs,
  }
}

/** The computes of the organization, whose objects check them and hold their tunnels. */
async function openFleet(
  env: Env,
  { storage, objects, tunnels, limits }: GatewayParts,
  { stateTable, tokens }: { readonly stateTable: StateTable; readonly tokens: Tokens },
): Promise<Fleet> {
  const registry = new RegistryTable(storage.sql, new Sealer(env.FLEET_KEY ?? ''), warn)
  const fleet = await Fleet.open({
    ...reaching,
    registry: sharedRegistry(registry, stateTable, objects),
    healthChecks: 'external',
    // A state that a request finds by itself holds until the object of the compute reports one.
    timeouts: { connectMs: 10_000, failures: 1, retryMs: [30_000, 30_000] },
    joinTokens: tokens.joinTokens,
    maxComputes: () => limits()?.max_computes ?? 0,
    holder: tunnels,
  })
  tunnels.gone = (id) => fleet.left(id, notJoined)
  fleet.listen((event) => {
    if (event.type === 'log.warning') warn(event.message)
  })
  return fleet
}

/** The computes of the fleet, as their objects report them. */
function membersOf(fleet: Fleet, toldProjects: ReportedProjectsTable, { pushedFeeds }: GatewayParts): FleetMembers {
  fleet.listen((event) => {
    if (event.type === 'compute.deleted') toldProjects.forget(event.compute.compute_id)
  })
  return {
    ...fleetMembers(fleet),
    // An object that reads a stream of another object cannot hibernate.
    openFeed: ({ id }, feed) => pushedFeeds.open(id, feed),
    toldProjects,
  }
}

/** The step that waits until the states of the computes are known, before a request for all of them. */
const awaitStates =
  ({ objects: { named }, limits }: GatewayParts, states: ReportedStates): RequestStep =>
  async (context, next) => {
    // An isolate may not know yet that the organization was deleted. A later organization of this id would get what is made now.
    if (named !== undefined && limits() === undefined) throw noSuchOrganization(named)
    const { endpoint } = matchOf(context)
    if (endpoint.owner === 'all' || endpoint.scope === 'own') await states.known()
    return next()
  }

/** The digests of images, the bucket with the images if there is one, and what is still to be copied there. */
function openImages(env: Env, { storage, objects }: GatewayParts, fleet: Fleet) {
  const digests = new ImageDigestTable(storage.sql)
  const images =
    env.IMAGES &&
    new ImageBucket(env.IMAGES, {
      organization: objects.organization,
      secret: env.FLEET_KEY ?? '',
      isUsed: (sha256) => digests.isUsed(sha256),
      isJoined: (id) => fleet.isTunnelled(id),
    })
  const wakeAt = async (time: number) => {
    const known = await storage.getAlarm()
    if (known === null || known > time) await storage.setAlarm(time)
  }
  const pending = new PendingReplicationsTable(storage.sql, (time) => waitUntil(wakeAt(time)))
  digests.unused = (sha256) => {
    pending.remove(sha256)
    const removing = images?.remove(sha256).catch(({ message }: Error) => warn(`An image stays in R2: ${message}`))
    if (removing !== undefined) waitUntil(removing)
  }
  return { images, digests, pending }
}

/** Labs, each in an object of its own. */
class LabObjects implements LabsElsewhere {
  readonly jobs: JobTable
  readonly #objects: Objects

  constructor(objects: Objects, jobs: JobTable) {
    this.#objects = objects
    this.jobs = jobs
  }

  computeOf(id: string, part: string): Promise<string | undefined> {
    return this.#objects.project(id).computeOf(id, part)
  }

  workOnStudentLab(id: string, work: StudentLabWork, { caller }: WorkFor): Promise<void> {
    return resultOf(this.#objects.project(id).workOnStudentLab(id, encode(work), caller))
  }

  async move(id: string, from: string, { signal, show }: MoveOptions): Promise<string> {
    const lab = this.#objects.project(id)
    const cancel = () => void lab.cancelMove(from).catch(ignore('the move ended with the program of its lab'))
    signal.addEventListener('abort', cancel)
    try {
      return await resultOf(lab.move(id, from, async (doing) => show(doing)))
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }
}
