import type { EventAgent, FileAgent, HostAgent, HostFacts, ImageAgent, NodeAgent, ProjectAgent } from '../host-agent.ts'
import { remoteActions } from './actions.ts'
import { Connection } from './connection.ts'
import { remoteConsoles } from './consoles.ts'
import { remoteEvents } from './events.ts'
import { remoteFiles } from './files.ts'
import { remoteHost } from './host.ts'
import { remoteImages } from './images.ts'
import { remoteLinks } from './links.ts'
import { remoteLives } from './nodes.ts'
import type { RemoteOptions } from './options.ts'
import { remoteProjects } from './projects.ts'

/**
 * The host agent of another compute, over its HTTP interface: one call an operation. What it answers is not trusted: it must
 * fit the schemas of the model, in bounded size and time. Beside the errors of the operations and those of its transport: 501
 * for what its version does not have, 502 when it answers something else, 503 when it cannot be reached, 504 when it takes too
 * long. Only what reads is tried again, and only when no answer had begun.
 */
export class RemoteHostAgent implements HostAgent {
  readonly host: HostFacts
  readonly projects: ProjectAgent
  readonly files: FileAgent
  readonly images: ImageAgent
  readonly nodes: NodeAgent
  readonly events: EventAgent

  /** Nothing is asked before it is needed. */
  constructor(options: RemoteOptions) {
    const connection = new Connection(options)
    const lives = remoteLives(connection)
    const actions = remoteActions(connection)
    this.host = { ...remoteHost(connection), action: actions.ofCompute }
    this.projects = remoteProjects(connection)
    this.files = remoteFiles(connection)
    this.images = remoteImages(connection)
    this.nodes = {
      ...lives,
      ...remoteLinks(connection),
      ...remoteConsoles(connection, options.openSocket),
      action: actions.ofNodes,
    }
    this.events = remoteEvents(connection)
  }
}
