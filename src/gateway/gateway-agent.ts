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
import { Whereabouts } from './whereabouts.ts'

export interface GatewayOptions {
  readonly members: Members
  readonly placements: PlacementStore
  readonly host: GatewayHost
  /** Given by a program that may sleep while feeds are open. */
  readonly bookmarks?: Bookmarks
}

export interface Gateway {
  /** The agent for one request; `absent` is told the name of every compute that was not there to answer. */
  agent(absent: (name: string) => void): HostAgent
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
  const nodes = gatewayNodes(whereabouts, new ImageCopies(members, whereabouts))
  const files = gatewayFiles(whereabouts)
  const routers = gatewayRouters(whereabouts)
  const dynamips = gatewayDynamips(whereabouts)
  return {
    agent(absent) {
      const everyone = new Everyone(members, absent)
      return {
        host: gatewayHost(host, members, everyone),
        projects: gatewayProjects({ members, everyone, whereabouts, room, turns }),
        files,
        images: gatewayImages(everyone),
        nodes,
        machines: gatewayMachines(whereabouts, everyone),
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
