import type { FleetAgent } from '../../host-agent.ts'
import { KeyedMutex } from '../../lib/async/keyed-mutex.ts'
import type { RelayedAnswer } from '../../lib/http/relayed-answer.ts'
import { type Bookmarks, GatewayEvents } from '../events/events.ts'
import { lastLoad } from '../events/last-load.ts'
import { imageCopies, type ReplicateImage } from '../images/image-copies.ts'
import { type Hasher, type ImageDigests, UploadDigests } from '../images/image-digests.ts'
import { gatewayImages } from '../images/images.ts'
import { imageKeeper, type KeepImage, type PendingReplications, type StoredImages } from '../images/kept-images.ts'
import { FanOut } from '../members/fan-out.ts'
import type { FleetMembers, LabPlacements, PlacementStore } from '../members/members.ts'
import type { RequestingCaller } from '../members/requesting-caller.ts'
import { type AskOwner, ProjectLocator } from '../placement/project-locator.ts'
import type { ProjectQuota } from '../placement/project-quota.ts'
import { gatewayProjects } from '../placement/projects.ts'
import { Scheduler } from '../placement/scheduler.ts'
import { forwardRequest, type ProjectRequest } from './forward-request.ts'
import { type GatewayHost, gatewayHost, loadOf } from './host.ts'
import { gatewayNodes } from './nodes.ts'

export interface GatewayOptions {
  readonly members: FleetMembers
  readonly placements: PlacementStore
  readonly host: GatewayHost
  /** The digests of uploaded images; without them images are not copied between computes. */
  readonly digests?: { readonly store: ImageDigests; readonly newHasher: () => Hasher }
  /** Keeps images apart from the computes; `waitUntil` holds the process until work has ended. */
  readonly keeping?: {
    readonly kept: StoredImages
    readonly unkept: PendingReplications
    readonly waitUntil: (work: Promise<unknown>) => void
  }
  /** Has another program bring the images that computes lack. */
  readonly replicateImage?: ReplicateImage
  /** Given by a program that may sleep while feeds are open. */
  readonly bookmarks?: Bookmarks
  /** The labs over these computes. */
  readonly labs?: LabPlacements
  /** Limits how many projects are made; absent: there is no limit. */
  readonly quota?: ProjectQuota
  /** Gets the warnings for people, as the feeds do. */
  readonly warn?: (message: string) => void
}

/** What a gateway does for one request. */
export interface GatewayAgent extends FleetAgent {
  /** See `forwardRequest`; undefined where another process does it, or the agent itself answers. */
  forwardRequest(request: ProjectRequest): Promise<Response | RelayedAnswer> | undefined
}

export interface Gateway {
  /** The agent for one request. */
  agent(caller: RequestingCaller): GatewayAgent
  readonly events: GatewayEvents
  readonly locator: ProjectLocator
  readonly replicateImage: ReplicateImage
  /** Records the digests of all uploads. */
  readonly uploads: UploadDigests | undefined
  /** Keeps an image apart from the computes, if it is not yet; see `imageKeeper`. */
  readonly keep: KeepImage
  close(): void
}

/**
 * The host agent of many computes: requests about a project go to the compute that has it, requests about hosts go to all computes.
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
  const isShared = (projectId: string, message: string) => {
    eventsNow().warn(projectId, message)
    warn?.(message)
  }
  const locator = new ProjectLocator(members, placements, isShared, more.labs)
  const scheduler = new Scheduler()
  const turns = new KeyedMutex()
  const load = lastLoad(() => loadOf(members))
  // A program may make a gateway for each request: parts that most requests do not need are made at their first use.
  let events: GatewayEvents | undefined
  const eventsNow = () => (events ??= new GatewayEvents(members, locator, load, bookmarks))
  const metrics = async () => [...(await host.metrics()), ...eventsNow().metrics()]
  const { keeping } = more
  const keep: KeepImage =
    keeping === undefined || digests === undefined
      ? () => {}
      : imageKeeper({ ...keeping, members, digests: digests.store, warn: warn ?? (() => {}) })
  const uploads = digests && new UploadDigests(digests.store, digests.newHasher, keep)
  const replicateImage = more.replicateImage ?? imageCopies(members, uploads, keeping && { kept: keeping.kept, keep })
  return {
    agent(caller) {
      const fanOut = () => new FanOut(members, caller)
      const at: AskOwner = (id, use, part) => locator.at(id, use, caller, part)
      // Most requests are forwarded: all other parts are made at their first use.
      return {
        forwardRequest: (request) => forwardRequest(request, { locator, replicateImage, turns }, caller),
        get host() {
          return gatewayHost({ ...host, metrics }, members, fanOut())
        },
        get projects() {
          return gatewayProjects({ members, locator, scheduler, turns, at, fanOut: fanOut(), quota: more.quota })
        },
        get images() {
          return gatewayImages(fanOut(), { uploads, byAdmin: caller.caller.mayExecute, isKept: keeping !== undefined })
        },
        get nodes() {
          return gatewayNodes(at)
        },
        events: {
          open: (options) => {
            const { projectId } = options
            return projectId === undefined
              ? eventsNow().open(options)
              : at(projectId, (agent) => agent.events.open(options))
          },
        },
      }
    },
    get events() {
      return eventsNow()
    },
    locator,
    replicateImage,
    uploads,
    keep,
    close: () => events?.close(),
  }
}
