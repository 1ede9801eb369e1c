import type { HostAgent } from '../host-agent.ts'
import type { Load } from '../model/host.ts'
import { Serial } from '../serial.ts'
import type { Asker } from './asker.ts'
import { type Bookmarks, GatewayEvents } from './events.ts'
import { Everyone } from './everyone.ts'
import { type GatewayHost, gatewayHost, gatewayHypervisors, loadOf } from './host.ts'
import { type BringImage, ImageCopies } from './image-copies.ts'
import { type Hasher, type ImageDigests, UploadDigests } from './image-digests.ts'
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
  /** Of the images that are uploaded; without it images are not copied between computes. */
  readonly digests?: { readonly store: ImageDigests; readonly newHasher: () => Hasher }
  /** Has another program bring the images that computes lack. */
  readonly bring?: BringImage
  /** Given by a program that may sleep while feeds are open. */
  readonly bookmarks?: Bookmarks
  /** Told what a person has to look at, beside the feeds. */
  readonly warn?: (message: string) => void
}

export interface Gateway {
  /** The agent for one request. */
  agent(asker: Asker): HostAgent
  readonly events: GatewayEvents
  readonly whereabouts: Whereabouts
  readonly bring: BringImage
  close(): void
}

/**
 * The host agent of many computes: every project is on one of them, which is asked all that is about it; what is about hosts is
 * asked of all.
 */
export function createGateway({
  members,
  placements,
  host,
  digests,
  bookmarks,
  warn,
  ...more
}: GatewayOptions): Gateway {
  const whereabouts = new Whereabouts(members, placements, (projectId, message) => {
    events.warn(projectId, message)
    warn?.(message)
  })
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
  const events: GatewayEvents = new GatewayEvents(members, whereabouts, loadNow, bookmarks)
  const metrics = async () => [...(await host.metrics()), ...events.metrics()]
  const uploads = digests && new UploadDigests(digests.store, digests.newHasher)
  const bring = more.bring ?? new ImageCopies(members, whereabouts, digests?.store).bring
  return {
    agent(asker) {
      const everyone = new Everyone(members, asker)
      const at: AskOwner = (id, use, how) => whereabouts.at(id, use, { ...how, asker })
      return {
        host: gatewayHost({ ...host, metrics }, members, everyone),
        projects: gatewayProjects({ members, everyone, whereabouts, at, room, turns }),
        files: gatewayFiles(at),
        images: gatewayImages(everyone, { uploads, byAdmin: asker.caller.mayExecute }),
        nodes: gatewayNodes(at, bring),
        machines: gatewayMachines(at, everyone),
        routers: gatewayRouters(at),
        dynamips: gatewayDynamips(at),
        hypervisors: gatewayHypervisors(everyone),
        events: {
          open(options) {
            const { projectId } = options
            if (projectId === undefined) return events.open(options)
            return at(projectId, (agent) => agent.events.open({ ...options, projectId }))
          },
        },
      }
    },
    events,
    whereabouts,
    bring,
    close: () => events.close(),
  }
}
