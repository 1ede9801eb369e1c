import type { Calls } from './calls.ts'

type ListName = {
  [K in keyof Calls]: Calls[K]['reply'] extends never ? never : Calls[K]['reply'] extends readonly unknown[] ? K : never
}[keyof Calls]

/** The compiler compares these with the declarations of the endpoints. */
const names: Readonly<Record<ListName, true>> = {
  'GET /v2/compute/network/interfaces': true,
  'GET /v2/compute/metrics': true,
  'GET /v2/projects': true,
  'GET /v2/projects/{project_id}/nodes': true,
  'GET /v2/projects/{project_id}/nodes/{node_id}/links': true,
  'GET /v2/classes': true,
  'POST /v2/classes/{class}/links': true,
  'GET /v2/jobs': true,
  'POST /v2/projects/{project_id}/presence': true,
  'GET /v2/statistics': true,
  'GET /v2/projects/{project_id}/links': true,
  'GET /v2/projects/{project_id}/links/{link_id}/available_filters': true,
  'GET /v2/projects/{project_id}/nodes/{node_id}/files': true,
  'GET /v2/kinds': true,
  'GET /v2/templates': true,
  'GET /v2/symbols': true,
  'GET /v2/projects/{project_id}/drawings': true,
  'GET /v2/projects/{project_id}/snapshots': true,
  'GET /v2/compute/hypervisor/vms': true,
  'GET /v2/compute/machine-emulator/binaries': true,
  'GET /v2/compute/iou/images': true,
  'GET /v2/compute/iou/image_uses': true,
  'GET /v2/compute/machine-emulator/images': true,
  'GET /v2/compute/machine-emulator/image_uses': true,
  'GET /v2/compute/machine-emulator/img-binaries': true,
  'GET /v2/compute/container/images': true,
  'GET /v2/compute/container/image_uses': true,
  'GET /v2/compute/dynamips/images': true,
  'GET /v2/compute/dynamips/image_uses': true,
  'GET /v2/projects/{project_id}/nodes/{node_id}/dynamips/idlepc_proposals': true,
  'GET /v2/computes': true,
  'GET /v2/computes/{compute_id}/{emulator}/images': true,
  'GET /v2/appliancevm/engines': true,
  'GET /v2/appliancevm/engines/{engine}/vms': true,
  'GET /v2/tokens': true,
  'GET /v2/organizations': true,
}

/** The calls whose answer is a list. */
export const listCalls: ReadonlySet<string> = new Set(Object.keys(names))
