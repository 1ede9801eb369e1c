import { createGateway, type Gateway, type GatewayOptions } from '../fleet/gateway/gateway-agent.ts'
import type { GatewayHost } from '../fleet/gateway/host.ts'
import type { ReplicateImage } from '../fleet/images/image-copies.ts'
import { peersOfNodes } from '../fleet/link-check/peer-address.ts'
import { fleetMembers } from '../fleet/members/fleet-members.ts'
import type { FleetMembers, LabPlacements, PlacementStore } from '../fleet/members/members.ts'
import { ProjectQuota } from '../fleet/placement/project-quota.ts'
import type { Fleet } from '../fleet/pool/fleet.ts'
import type { Labs } from '../labs/service.ts'
import type { AppServices } from './app-options.ts'

/** What a runtime makes a gateway of: its fleet, where it stores, and what it can do. */
interface GatewayPorts extends Pick<GatewayOptions, 'host' | 'digests' | 'keeping' | 'bookmarks' | 'warn'> {
  readonly fleet: Fleet
  /** Its computes; absent: as the fleet reaches them. */
  readonly members?: FleetMembers
  readonly placements: PlacementStore & { idsOn(isWanted: (computeId: string) => boolean): readonly string[] }
  /** Most projects, labs among them; 0: no limit. */
  readonly maxProjects: () => number
  /** Opens the labs over the fleet. */
  readonly openLabs: (parts: { readonly quota: ProjectQuota; readonly replicateImage: ReplicateImage }) => Promise<Labs>
  /** Where the parts of labs are; absent: as the labs say. */
  readonly placementsOf?: (labs: Labs) => LabPlacements
}

interface ComposedGateway {
  readonly gateway: Gateway
  readonly labs: Labs
  readonly services: Pick<AppServices, 'fleet' | 'labs' | 'peers' | 'uploads'>
  /** Ids of the projects, labs among them. */
  readonly projects: () => ReadonlySet<string>
}

/** A gateway and its labs, each of which needs the other: placed projects and labs count for one limit, and are searched for together. */
export async function composeGateway({
  fleet,
  members = fleetMembers(fleet),
  placements,
  maxProjects,
  openLabs,
  placementsOf = (labs) => labs,
  ...ports
}: GatewayPorts): Promise<ComposedGateway> {
  let opened: { readonly labs: Labs; readonly placements: LabPlacements } | undefined
  const isKnown = (computeId: string) => fleet.find(computeId) !== undefined
  const projects = () => new Set([...placements.idsOn(isKnown), ...(opened?.labs.registry.ids() ?? [])])
  const quota = new ProjectQuota({ max: maxProjects, projects })
  const gateway = createGateway({ ...ports, members, placements, quota, labs: () => opened?.placements })
  const labs = await openLabs({ quota, replicateImage: gateway.replicateImage })
  opened = { labs, placements: placementsOf(labs) }
  gateway.locator.follow(labs.registry)
  const peers = peersOfNodes(fleet, gateway.locator)
  return { gateway, labs, projects, services: { fleet, labs, peers, uploads: gateway.uploads } }
}

/** The computes of a program that has none at hand. */
export const noMembers: FleetMembers = { all: async () => [], find: async () => undefined, watch: () => () => {} }

/** The gateway of a program whose requests are not about computes: an app needs an agent. */
export function gatewayWithoutComputes(host: GatewayHost): Gateway {
  const placements: PlacementStore = { get: async () => undefined, put: async () => {}, remove: async () => {} }
  return createGateway({ members: noMembers, placements, host })
}
