import type { Endpoint } from '../http/endpoint.ts'
import { docsEndpoints } from './docs.ts'
import { hypervisorEndpoints } from './hypervisors.ts'
import { idlePcEndpoints } from './idle-pc.ts'
import { imageEndpoints } from './images.ts'
import { machineEndpoints } from './machines.ts'
import { metricsEndpoints } from './metrics.ts'
import { routerEndpoints } from './routers.ts'
import { serverEndpoints } from './server.ts'
import { instancesV1 } from './v1/instances.ts'
import { projectsV1 } from './v1/projects.ts'
import { applianceVmEndpoints } from './v2/appliance-vm.ts'
import { autoIdlePc } from './v2/auto-idle-pc.ts'
import { computeEndpoints } from './v2/computes.ts'
import { nodeLinkEndpoints } from './v2/node-links.ts'
import { nodesV2 } from './v2/nodes.ts'
import { notificationEndpoints } from './v2/notifications.ts'
import { projectsV2 } from './v2/projects.ts'
import { sessionEndpoints } from './v2/session.ts'
import { tokenEndpoints } from './v2/tokens.ts'

/** Every endpoint of the service. */
export const endpoints: readonly Endpoint[] = [
  ...docsEndpoints,
  ...serverEndpoints,
  ...metricsEndpoints,
  ...projectsV1,
  ...instancesV1,
  ...projectsV2,
  ...nodesV2,
  ...imageEndpoints,
  ...routerEndpoints,
  ...machineEndpoints,
  ...idlePcEndpoints,
  autoIdlePc,
  ...hypervisorEndpoints,
  ...computeEndpoints,
  ...applianceVmEndpoints,
  ...notificationEndpoints,
  ...nodeLinkEndpoints,
  ...tokenEndpoints,
  ...sessionEndpoints,
]
