import { createGateway, type Gateway, type GatewayOptions } from '../fleet/gateway/gateway-agent.ts'
import type { GatewayHost } from '../fleet/gateway/host.ts'
import { peersOfNodes } from '../fleet/link-check/peer-address.ts'
import { fleetMembers } from '../fleet/members/fleet-members.ts'
import type { FleetMembers, LabPlacements, PlacementStore } from '../fleet/members/members.ts'
import { ProjectQuota } from '../fleet/placement/project-quota.ts'
import type { Fleet } from '../fleet/pool/fleet.ts'
import { type LabCatalog, listProjects } from '../labs/catalog.ts'
import type { ComputePool } from '../labs/computes/compute-pool.ts'
import { fleetPool } from '../labs/computes/fleet-pool.ts'
import { DirectoryRegistry, type PresentStore } from '../labs/directory-registry.ts'
import { type JobList, Jobs } from '../labs/jobs/jobs.ts'
import { recordStorage } from '../labs/lab/document-codec.ts'
import { SharedDocument } from '../labs/lab/shared-document.ts'
import type { LabDirectory } from '../labs/lab/store.ts'
import { LabRegistry, type RegistryOptions } from '../labs/registry.ts'
import { createLabs, type LabPorts, type Labs } from '../labs/service.ts'
import { SingleLabRegistry } from '../labs/single-lab-registry.ts'
import { Symbols } from '../labs/symbols.ts'
import { ComputeSync } from '../labs/sync.ts'
import { SyncOnDemand } from '../labs/sync-on-demand.ts'
import { Templates } from '../labs/templates.ts'
import type { LabTemplate } from '../model/lab/template.ts'

// What the programs of a service are made of, one function each. A runtime gives them ports: where they store, whom they tell, what they run on.

/** A service that runs emulators itself. `fleet`: this machine, and the computes beside it. */
export async function composeCompute(fleet: Fleet, ports: LabPorts) {
  const labs = await openLabs(ports, fleetPool(fleet))
  return { labs, services: { fleet, catalog: labs, labs } }
}

/** A gateway whose labs run in its process. */
export async function composeGateway(ports: GatewayPorts & { readonly labs: LabPorts }) {
  const projects = projectsOf(ports, () => labs.registry)
  const quota = new ProjectQuota({ max: ports.maxProjects, projects })
  const computes = fleetPool(ports.fleet, (computeId, image) => gateway.replicateImage(computeId, image))
  const labs = await openLabs(ports.labs, computes, quota)
  const { gateway, services } = overFleet(ports, quota, labs, (id, part) => labs.documents.computeOf(id, part))
  return { gateway, labs, projects, services: { ...services, labs } }
}

/** A gateway whose labs have processes of their own: it has their names and heads, and what all labs share. */
export async function composeDirectory(ports: GatewayPorts & { readonly labs: DirectoryPorts }) {
  const { store, report, elsewhere, present } = ports.labs
  const projects = projectsOf(ports, () => registry)
  const quota = new ProjectQuota({ max: ports.maxProjects, projects })
  const records = recordStorage(store)
  const { registry, ...shared } = await openShared(
    ports.labs,
    (heads) => new DirectoryRegistry({ ...heads, quota }, records, present),
  )
  const computes = fleetPool(ports.fleet)
  const jobs = new Jobs({ computes, report, emit: (event) => registry.emit(event) })
  const catalog: LabCatalog = {
    ...shared,
    registry,
    computes,
    jobs,
    allJobs: jobs.with(elsewhere.jobs),
    // A lab in another process is cleaned up when its alarm is due.
    cleanedUp: async () => {},
    list: (agentFor) => listProjects(catalog, agentFor),
    move: (id, from, options) => elsewhere.move(id, from, options),
    workOnStudentLab: (id, work, by) => elsewhere.workOnStudentLab(id, work, by),
  }
  const { gateway, services } = overFleet(ports, quota, catalog, async (id, part) => {
    const [first, ...others] = registry.computesOf(id) ?? []
    return others.length === 0 ? first : elsewhere.computeOf(id, part)
  })
  return { gateway, registry, computes, projects, services }
}

/** The process of a single lab, beside a directory. */
export async function composeLab({ id, directory, computes, host, ...ports }: SingleLabPorts) {
  const parts = await openShared(ports, (heads) => new SingleLabRegistry(heads, id, directory), true)
  const labs = createLabs(ports, {
    ...parts,
    computes,
    syncOf: (following) => new SyncOnDemand(following, id),
    noteJob: (jobId, projectId) => directory.job(jobId, projectId),
  })
  // No request about computes comes here.
  const placements: PlacementStore = { get: async () => undefined, put: async () => {}, remove: async () => {} }
  const { agent } = createGateway({ members: noMembers, placements, host })
  return { labs, agent, services: { catalog: labs, labs } }
}

/** The gateways of a process of a Worker, which does not search for projects. A new one for each request: none waits for a promise of another. */
export function composeIsolate({ find, ...ports }: IsolatePorts): () => Gateway {
  const members: FleetMembers = { ...noMembers, find }
  return () => createGateway({ ...ports, members })
}

interface GatewayPorts extends Pick<GatewayOptions, 'host' | 'digests' | 'keeping' | 'bookmarks' | 'warn'> {
  readonly fleet: Fleet
  /** Its computes; absent: as the fleet reaches them. */
  readonly members?: FleetMembers
  readonly placements: PlacementStore & { idsOn(isWanted: (computeId: string) => boolean): readonly string[] }
  /** Most projects, labs among them; 0: no limit. */
  readonly maxProjects: () => number
}

interface DirectoryPorts extends Pick<LabPorts, 'store' | 'limits' | 'warn' | 'report'> {
  readonly elsewhere: LabsElsewhere
  readonly present: PresentStore
}

/** Labs in processes of their own. */
export interface LabsElsewhere extends Pick<LabCatalog, 'move' | 'workOnStudentLab'> {
  readonly jobs: JobList
  /** The compute of a part of a lab that is on several. */
  computeOf(id: string, part: string): Promise<string | undefined>
}

interface SingleLabPorts extends LabPorts {
  readonly id: string
  readonly directory: LabDirectory
  readonly computes: ComputePool
  readonly host: GatewayHost
}

interface IsolatePorts extends Pick<GatewayOptions, 'placements' | 'host' | 'replicateImage'> {
  readonly find: FleetMembers['find']
}

const noMembers: FleetMembers = { all: async () => [], find: async () => undefined, watch: () => () => {} }

/** All labs of a service, in this process. */
export async function openLabs(ports: LabPorts, computes: ComputePool, quota?: ProjectQuota): Promise<Labs> {
  const parts = await openShared(ports, (heads) => new LabRegistry({ ...heads, quota }))
  return createLabs(ports, { ...parts, computes, syncOf: (following) => new ComputeSync(following) })
}

/** What all labs share, as the store has it. `isElsewhere`: whether another process writes it. */
async function openShared<R extends LabRegistry>(
  { store, limits, warn }: Pick<LabPorts, 'store' | 'limits' | 'warn'>,
  registryOf: (heads: RegistryOptions) => R,
  isElsewhere = false,
) {
  const options = { store, limits, warn, isElsewhere }
  const [heads, templates, symbols] = await Promise.all([
    recordStorage(store).heads(),
    SharedDocument.open<LabTemplate>({ ...options, scope: 'templates' }),
    SharedDocument.open<string>({ ...options, scope: 'symbols' }),
  ])
  const registry = registryOf({ heads, limits, warn })
  const emit: LabRegistry['emit'] = (event) => registry.emit(event)
  return { registry, templates: new Templates({ own: templates, limits, emit }), symbols: new Symbols(symbols) }
}

/** Ids of the projects of a gateway, labs among them. */
const projectsOf =
  ({ fleet, placements }: GatewayPorts, registry: () => LabRegistry) =>
  (): ReadonlySet<string> =>
    new Set([...placements.idsOn((id) => fleet.find(id) !== undefined), ...registry().ids()])

/** A gateway and its labs: placed projects and labs count for one limit, and are searched for together. */
function overFleet(
  { fleet, members = fleetMembers(fleet), ...ports }: GatewayPorts,
  quota: ProjectQuota,
  catalog: LabCatalog,
  computeOf: LabPlacements['computeOf'],
) {
  const computesOf: LabPlacements['computesOf'] = (id) => catalog.registry.computesOf(id)
  const gateway = createGateway({ ...ports, members, quota, labs: { computesOf, computeOf } })
  gateway.locator.follow(catalog.registry)
  return {
    gateway,
    services: { fleet, catalog, peers: peersOfNodes(fleet, gateway.locator), uploads: gateway.uploads },
  }
}
