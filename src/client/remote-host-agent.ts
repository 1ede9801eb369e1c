import type {
  DynamipsAgent,
  EventAgent,
  FileAgent,
  HostAgent,
  HostFacts,
  HypervisorAgent,
  ImageAgent,
  MachineAgent,
  NodeAgent,
  ProjectAgent,
  RouterAgent,
} from '../host-agent.ts'
import { Connection } from './connection.ts'
import { remoteConsoles } from './consoles.ts'
import { remoteEvents } from './events.ts'
import { remoteFiles } from './files.ts'
import { remoteHost } from './host.ts'
import { remoteImages } from './images.ts'
import { remoteLinks } from './links.ts'
import { remoteMachines } from './machines.ts'
import { remoteLives } from './nodes.ts'
import type { RemoteOptions } from './options.ts'
import { remoteProjects } from './projects.ts'
import { remoteDynamips, remoteHypervisors, remoteRouters } from './routers.ts'

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
  readonly machines: MachineAgent
  readonly routers: RouterAgent
  readonly dynamips: DynamipsAgent
  readonly hypervisors: HypervisorAgent
  readonly events: EventAgent

  /** Nothing is asked before it is needed. */
  constructor(options: RemoteOptions) {
    const connection = new Connection(options)
    const lives = remoteLives(connection)
    this.host = remoteHost(connection)
    this.projects = remoteProjects(connection)
    this.files = remoteFiles(connection)
    this.images = remoteImages(connection)
    this.nodes = { ...lives, ...remoteLinks(connection), ...remoteConsoles(connection, options.openSocket) }
    this.machines = remoteMachines(connection)
    this.routers = remoteRouters(connection)
    this.dynamips = remoteDynamips(connection)
    this.hypervisors = remoteHypervisors(connection)
    this.events = remoteEvents(connection)
  }
}
