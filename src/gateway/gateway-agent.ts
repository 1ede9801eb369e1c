import { type Caller, type Via, viaOf } from '../auth/caller.ts'
import type { HostAgent } from '../host-agent.ts'
import type { Load } from '../model/host.ts'
import { Serial } from '../serial.ts'
import { type Bookmarks, GatewayEvents } from './events.ts'
import { Everyone } from './everyone.ts'
import { type GatewayHost, gatewayHost, gatewayHypervisors, loadOf } from './host.ts'
import { ImageCopies } from './image-copies.ts'
import { gatewayImages } from './images.ts'
import type { Members, PlacementStore } from './members.ts'
import { gatewayDynamips, gatewayMachines, gatewayNodes, gatewayRouters } from './nodes.ts'
import { gatewayFiles, gatewayProjects } from './projects.ts'
import { Room } from './room.ts'
import { type AskOwner, Whereabouts } from './whereabouts.ts'

export interface GatewayOptions {
  readonly members: Members
  readonly placements: PlacementStore
  readonly host: GatewayHost
  /** Given by a program that may sleep while feeds are open. */
  readonly bookmarks?: Bookmarks
}

export interface Gateway {
  /**
   * The agent for one request: `absent` is told the name of every compute that was not there to answer, and computes are told
   * whether the caller is an administrator.
   */
  agent(absent: (name: string) => void, caller: Caller): HostAgent
  readonly events: GatewayEvents
  readonly whereabouts: Whereabouts
  close(): void
}

/**
 * The host agent of many computes: every project is on one of them, which is asked all that is about it; what is about hosts is
 * asked of all.
 */
export function createGateway({ members, placements, host, bookmarks }: GatewayOptions): Gateway {
  const whereabouts = new Whereabouts(members, placements)
  const room = new Room()
  const turns = new Serial()
  let load: Load = { cpu_usage_percent: 0, memory_usage_percent: 0 }
  const loadNow = () => {
    // A ping must not wait; the figures are those of the ping before.
    loadOf(members).then(
      (now) => {
        load = now
      },
      () => {},
    )
    return load
  }
  const events = new GatewayEvents(members, whereabouts, loadNow, bookmarks)
  const copies = new ImageCopies(members, whereabouts)
  /** What asks the compute of a project, and holds nothing of a request. */
  const ofProjects = (via: Via) => {
    const at: AskOwner = (id, use, how) => whereabouts.at(id, use, { ...how, via })
    return {
      at,
      nodes: gatewayNodes(at, copies),
      files: gatewayFiles(at),
      routers: gatewayRouters(at),
      dynamips: gatewayDynamips(at),
    }
  }
  const asked = { admin: ofProjects('admin'), user: ofProjects('user') }
  return {
    agent(absent, caller) {
      const via = viaOf(caller)
      const { at, nodes, files, routers, dynamips } = asked[via]
      const everyone = new Everyone(members, absent, via)
      return {
        host: gatewayHost(host, members, everyone),
        projects: gatewayProjects({ members, everyone, whereabouts, at, room, turns }),
        files,
        images: gatewayImages(everyone),
        nodes,
        machines: gatewayMachines(at, everyone),
        routers,
        dynamips,
        hypervisors: gatewayHypervisors(everyone),
        events,
      }
    },
    events,
    whereabouts,
    close: () => events.close(),
  }
}
