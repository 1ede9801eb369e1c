import type { Endpoint } from './http/endpoint.ts'
import { docsEndpoints } from './routes/docs.ts'
import { imageEndpoints } from './routes/images.ts'
import { kindEndpoints } from './routes/kinds.ts'
import { applianceEndpoints } from './routes/labs/appliances.ts'
import { labArchiveEndpoints } from './routes/labs/archives.ts'
import { labConfigEndpoints } from './routes/labs/configs.ts'
import { labDrawingEndpoints } from './routes/labs/drawings.ts'
import { labImportEndpoints } from './routes/labs/imports.ts'
import { labJobEndpoints } from './routes/labs/jobs.ts'
import { labKindActionEndpoints } from './routes/labs/kind-actions.ts'
import { labLinkEndpoints } from './routes/labs/links.ts'
import { labNodeEndpoints } from './routes/labs/nodes.ts'
import { labPresenceEndpoint } from './routes/labs/presence.ts'
import { labProjectEndpoints } from './routes/labs/projects.ts'
import { labRelayEndpoints } from './routes/labs/relays.ts'
import { labSnapshotEndpoints } from './routes/labs/snapshots.ts'
import { statisticsEndpoint } from './routes/labs/statistics.ts'
import { labSymbolEndpoints } from './routes/labs/symbols.ts'
import { labTemplateEndpoints } from './routes/labs/templates.ts'
import { labTopologyEndpoints } from './routes/labs/topology.ts'
import { metricsEndpoints } from './routes/metrics.ts'
import { nodeEndpoints } from './routes/nodes.ts'
import { projectEndpoints } from './routes/projects.ts'
import { serverEndpoints } from './routes/server.ts'
import { uiEndpoints } from './routes/ui.ts'
import { applianceVmEndpoints } from './routes/v2/appliance-vm.ts'
import { computeLinkEndpoints } from './routes/v2/compute-links.ts'
import { computeSnapshotEndpoints } from './routes/v2/compute-snapshots.ts'
import { computeEndpoints } from './routes/v2/computes.ts'
import { imageActionEndpoints } from './routes/v2/image-actions.ts'
import { linkCheckEndpoints } from './routes/v2/link-checks.ts'
import { nodeLinkEndpoints } from './routes/v2/node-links.ts'
import { notificationEndpoints } from './routes/v2/notifications.ts'
import { organizationEndpoints } from './routes/v2/organizations.ts'
import { sessionEndpoints } from './routes/v2/session.ts'
import { tokenEndpoints } from './routes/v2/tokens.ts'

/** Every endpoint of the service. */
export const endpoints: readonly Endpoint[] = [
  ...uiEndpoints,
  ...docsEndpoints,
  ...serverEndpoints,
  ...metricsEndpoints,
  ...projectEndpoints,
  ...labProjectEndpoints,
  ...labTopologyEndpoints,
  ...labNodeEndpoints,
  ...labJobEndpoints,
  labPresenceEndpoint,
  ...labConfigEndpoints,
  statisticsEndpoint,
  ...labLinkEndpoints,
  ...labKindActionEndpoints,
  ...labRelayEndpoints,
  ...applianceEndpoints,
  ...kindEndpoints,
  ...labTemplateEndpoints,
  ...labSymbolEndpoints,
  ...labDrawingEndpoints,
  ...labArchiveEndpoints,
  ...labSnapshotEndpoints,
  ...labImportEndpoints,
  ...nodeEndpoints,
  ...computeLinkEndpoints,
  ...linkCheckEndpoints,
  ...computeSnapshotEndpoints,
  ...imageEndpoints,
  ...imageActionEndpoints,
  ...computeEndpoints,
  ...applianceVmEndpoints,
  ...notificationEndpoints,
  ...nodeLinkEndpoints,
  ...tokenEndpoints,
  ...sessionEndpoints,
  ...organizationEndpoints,
]
