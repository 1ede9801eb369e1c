import { Connection } from './connection.ts'
import { remoteEvents } from './events.ts'
import { remoteHost } from './host.ts'
import { remoteImages } from './images.ts'
import { remoteNodes } from './nodes.ts'
import type { RemoteOptions } from './options.ts'
import { remoteProjects } from './projects.ts'

/**
 * The operations of a compute from which a gateway composes its own answers; requests about one project are handed on instead. An
 * answer must fit the schemas of the model, in limited size and time. Beside the errors of the operations and of the transport: 501
 * for an operation that the version of the compute lacks, 502 for another answer, 503 when the compute cannot be reached, 504 after
 * a timeout. Only reads are retried, and only before an answer has begun.
 */
export type RemoteHostAgent = ReturnType<typeof remoteHostAgent>
export function remoteHostAgent(options: RemoteOptions) {
  const connection = new Connection(options)
  return {
    host: remoteHost(connection),
    projects: remoteProjects(connection),
    images: remoteImages(connection),
    nodes: remoteNodes(connection),
    events: remoteEvents(connection),
  }
}
