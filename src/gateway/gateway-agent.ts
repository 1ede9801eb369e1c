import { ignore } from '../async/ignore.ts'
import { KeyedMutex } from '../async/keyed-mutex.ts'
import type { SharedAgent } from '../host-agent.ts'
import type { RelayedAnswer } from '../http/relayed-answer.ts'
import type { Load } from '../model/host.ts'
import type { RequestingCaller } from './asker.ts'
import { type Bookmarks, GatewayEvents } from './events.ts'
import { FanOut } from './fan-out.ts'
import { handOn, type ProjectRequest } from './hand-on.ts'
import { type GatewayHost, gatewayHost, loadOf } from './host.ts'
import { type BringImage, ImageCopies } from './image-copies.ts'
import { type Hasher, type ImageDigests, UploadDigests } from './image-digests.ts'
import { gatewayImages } from './images.ts'
import type { FleetMembers, PlacementStore } from './members.ts'
import { gatewayLinks, gatewayNodes } from './nodes.ts'
import { type AskOwner, ProjectLocator } from './project-locator.ts'
import { gatewayProjects } from './projects.ts'
import { Scheduler } from './scheduler.ts'

export interface GatewayOptions {
  readonly members: FleetMembers
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

/** What a gateway does for one request. */
export interface GatewayAgent extends SharedAgent {
  /** See `handOn`; undefined where another process does it, or the agent itself answers. */
  handOn(request: ProjectRequest): Promise<Response | RelayedAnswer> | undefined
}

export interface Gateway {
  /** The agent for one request. */
  agent(caller: RequestingCaller): GatewayAgent
  readonly events: GatewayEvents
  readonly locator: ProjectLocator
  readonly bring: BringImage
  /** Records the digests of what is uploaded, wherever that is. */
  readonly uploads: UploadDigests | undefined
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
  const locator = new ProjectLocator(members, placements, (projectId, message) => {
    events.warn(projectId, message)
    warn?.(message)
  })
  const scheduler = new Scheduler()
  const turns = new KeyedMutex()
  let load: Load = { cpu_usage_percent: 0, memory_usage_percent: 0 }
  const loadNow = () => {
    // A ping must not wait; the figures are those of the ping before.
    loadOf(members).then((now) => {
      load = now
    }, ignore('the figures of before are told'))
    return load
  }
  const events: GatewayEvents = new GatewayEvents(members, locator, loadNow, bookmarks)
  const metrics = async () => [...(await host.metrics()), ...events.metrics()]
  const uploads = digests && new UploadDigests(digests.store, digests.newHasher)
  const bring = more.bring ?? new ImageCopies(members, locator, uploads).bring
  const parts = { members, locator, scheduler, turns, events, uploads, bring, host: { ...host, metrics } }
  return {
    agent: (caller) => new RequestAgent(parts, caller),
    events,
    locator,
    bring,
    uploads,
    close: () => events.close(),
  }
}

interface Parts
  extends Pick<Gateway, 'events' | 'locator' | 'bring' | 'uploads'>,
    Pick<GatewayOptions, 'members' | 'host'> {
  readonly scheduler: Scheduler
  readonly turns: KeyedMutex
}

/** The agent for one request. Most requests are handed on: the rest is made when it is used. */
class RequestAgent implements GatewayAgent {
  readonly #parts: Parts
  readonly #caller: RequestingCaller

  constructor(parts: Parts, caller: RequestingCaller) {
    this.#parts = parts
    this.#caller = caller
  }

  readonly handOn = (request: ProjectRequest): Promise<Response | RelayedAnswer> =>
    handOn(request, this.#parts, this.#caller)

  get host(): SharedAgent['host'] {
    return gatewayHost(this.#parts.host, this.#parts.members, this.#fanOut)
  }

  get projects(): SharedAgent['projects'] {
    return gatewayProjects({ ...this.#parts, fanOut: this.#fanOut, at: this.#at })
  }

  get images(): SharedAgent['images'] {
    return gatewayImages(this.#fanOut, { uploads: this.#parts.uploads, byAdmin: this.#caller.caller.mayExecute })
  }

  get nodes(): SharedAgent['nodes'] {
    return gatewayNodes(this.#at)
  }

  get links(): SharedAgent['links'] {
    return gatewayLinks(this.#at)
  }

  get events(): SharedAgent['events'] {
    return {
      open: (options) => {
        const { projectId } = options
        if (projectId === undefined) return this.#parts.events.open(options)
        return this.#at(projectId, (agent) => agent.events.open({ ...options, projectId }))
      },
    }
  }

  get #fanOut(): FanOut {
    return new FanOut(this.#parts.members, this.#caller)
  }

  get #at(): AskOwner {
    return (id, use) => this.#parts.locator.at(id, use, this.#caller)
  }
}
