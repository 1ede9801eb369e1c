import type {
  EventAgent,
  FileAgent,
  HostAgent,
  HostFacts,
  ImageAgent,
  LinkAgent,
  LinkCheckAgent,
  NodeAgent,
  ProjectAgent,
  ReplicationOutcome,
  SnapshotAgent,
} from '../../host-agent.ts'
import { Connection } from './connection.ts'
import { remoteEvents } from './events.ts'
import { remoteFiles } from './files.ts'
import { remoteHost } from './host.ts'
import { remoteImages } from './images.ts'
import { remoteLinkChecks, remoteLinks } from './links.ts'
import { remoteNodes } from './nodes.ts'
import type { RemoteOptions } from './options.ts'
import { remoteProjects } from './projects.ts'
import { remoteSnapshots } from './snapshots.ts'

/**
 * The agent of a compute, over HTTP or a tunnel. An answer must fit the schemas of the model, in limited size and time. Beside the
 * errors of the operations and of the transport: 501 for an operation that the version of the compute lacks, 502 for another answer,
 * 503 when the compute cannot be reached, 504 after a timeout. Only reads are retried, and only before an answer has begun. It has no
 * state: one may be made for each request.
 */
export class RemoteHostAgent implements HostAgent {
  readonly host: HostFacts
  readonly projects: ProjectAgent
  readonly files: FileAgent
  readonly images: ImageAgent
  readonly nodes: NodeAgent
  readonly links: LinkAgent
  readonly linkChecks: LinkCheckAgent
  readonly snapshots: SnapshotAgent
  readonly events: EventAgent

  /** `replicateImage`: copies an image to the compute. */
  constructor(options: RemoteOptions, replicateImage?: (image: string) => Promise<ReplicationOutcome>) {
    const connection = new Connection(options)
    this.host = remoteHost(connection)
    this.projects = remoteProjects(connection)
    this.files = remoteFiles(connection)
    this.images = { ...remoteImages(connection), ...(replicateImage && { replicate: replicateImage }) }
    this.nodes = remoteNodes(connection)
    this.links = remoteLinks(connection)
    this.linkChecks = remoteLinkChecks(connection)
    this.snapshots = remoteSnapshots(connection)
    this.events = remoteEvents(connection)
  }
}
