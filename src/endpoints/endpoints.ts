import type { Endpoint } from '../server/http/endpoint.ts'
import { imageEndpoints } from './compute/images.ts'
import { kindEndpoints } from './compute/kinds.ts'
import { nodeEndpoints } from './compute/nodes.ts'
import { projectEndpoints } from './compute/projects.ts'
import { serverEndpoints } from './compute/server.ts'
import { assistantEndpoints } from './service/assistants.ts'
import { docsEndpoints } from './service/docs.ts'
import { metricsEndpoints } from './service/metrics.ts'
import { uiEndpoints } from './service/ui.ts'
import { computeLinkEndpoints } from './v2/compute/compute-links.ts'
import { computeSnapshotEndpoints } from './v2/compute/compute-snapshots.ts'
import { imageActionEndpoints } from './v2/compute/image-actions.ts'
import { applianceVmEndpoints } from './v2/fleet/appliance-vm.ts'
import { computeEndpoints } from './v2/fleet/computes.ts'
import { linkCheckEndpoints } from './v2/fleet/link-checks.ts'
import { nodeLinkEndpoints } from './v2/fleet/node-links.ts'
import { notificationEndpoints } from './v2/fleet/notifications.ts'
import { organizationEndpoints } from './v2/fleet/organizations.ts'
import { sessionEndpoints } from './v2/fleet/session.ts'
import { tokenEndpoints } from './v2/fleet/tokens.ts'
import { applianceEndpoints } from './v2/labs/appliances.ts'
import { labArchiveEndpoints } from './v2/labs/archives.ts'
import { classEndpoints } from './v2/labs/classes.ts'
import { labConfigEndpoints } from './v2/labs/configs.ts'
import { labDrawingEndpoints } from './v2/labs/drawings.ts'
import { labImportEndpoints } from './v2/labs/imports.ts'
import { labInventoryEndpoint } from './v2/labs/inventory.ts'
import { labJobEndpoints } from './v2/labs/jobs.ts'
import { labKindActionEndpoints } from './v2/labs/kind-actions.ts'
import { labLinkEndpoints } from './v2/labs/links.ts'
import { labNodeEndpoints } from './v2/labs/nodes.ts'
import { labPresenceEndpoint } from './v2/labs/presence.ts'
import { labProjectEndpoints } from './v2/labs/projects.ts'
import { labRelayEndpoints } from './v2/labs/relays.ts'
import { labSnapshotEndpoints } from './v2/labs/snapshots.ts'
import { statisticsEndpoint } from './v2/labs/statistics.ts'
import { labSymbolEndpoints } from './v2/labs/symbols.ts'
import { labTaskEndpoints } from './v2/labs/tasks.ts'
import { labTemplateEndpoints } from './v2/labs/templates.ts'
import { labTopologyEndpoints } from './v2/labs/topology.ts'

/** Every endpoint of the service. */
export const endpoints: readonly Endpoint[] = [
  ...uiEndpoints,
  ...docsEndpoints,
  ...assistantEndpoints,
  ...serverEndpoints,
  ...metricsEndpoints,
  ...projectEndpoints,
  ...labProjectEndpoints,
  ...labTopologyEndpoints,
  labInventoryEndpoint,
  ...labTaskEndpoints,
  ...classEndpoints,
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
