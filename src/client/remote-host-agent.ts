import type { EventAgent, ImageAgent, LinkAgent, SharedAgent } from '../host-agent.ts'
import { Connection } from './connection.ts'
import { remoteEvents } from './events.ts'
import { type RemoteHost, remoteHost } from './host.ts'
import { remoteImages } from './images.ts'
import { remoteLinks } from './links.ts'
import { remoteNodes } from './nodes.ts'
import type { RemoteOptions } from './options.ts'
import { remoteProjects } from './projects.ts'

/**
 * What a gateway asks of a compute to compose an answer of its own: one call an operation. Requests about one project are handed on
 * as they are, and need none. What a compute answers is not trusted: it must fit the schemas of the model, in bounded size and
 * time. Beside the errors of the operations and those of its transport: 501 for what its version does not have, 502 when it answers
 * something else, 503 when it cannot be reached, 504 when it takes too long. Only what reads is tried again, and only when no
 * answer had begun.
 */
export class RemoteHostAgent {
  readonly host: RemoteHost
  readonly projects: ReturnType<typeof remoteProjects>
  readonly images: ImageAgent
  readonly nodes: SharedAgent['nodes']
  readonly links: LinkAgent
  readonly events: EventAgent

  /** Nothing is asked before it is needed. */
  constructor(options: RemoteOptions) {
    const connection = new Connection(options)
    this.host = remoteHost(connection)
    this.projects = remoteProjects(connection)
    this.images = remoteImages(connection)
    this.nodes = remoteNodes(connection)
    this.links = remoteLinks(connection)
    this.events = remoteEvents(connection)
  }
}
