import type { Endpoint } from '../http/endpoint.ts'
import { docsEndpoints } from './docs.ts'
import { imageEndpoints } from './images.ts'
import { metricsEndpoints } from './metrics.ts'
import { serverEndpoints } from './server.ts'
import { pcV1Endpoints } from './v1/pc.ts'
import { projectsV1 } from './v1/projects.ts'
import { nodesV2 } from './v2/nodes.ts'
import { projectsV2 } from './v2/projects.ts'

/** Every endpoint of the service. */
export const endpoints: readonly Endpoint[] = [
  ...docsEndpoints,
  ...serverEndpoints,
  ...metricsEndpoints,
  ...projectsV1,
  ...pcV1Endpoints,
  ...projectsV2,
  ...nodesV2,
  ...imageEndpoints,
]
