import { Type } from '@sinclair/typebox'
import { inventoryOf } from '../../../labs/export/inventory.ts'
import { InventoryFormat, LabInventory } from '../../../model/lab/inventory.ts'
import { endpoint } from '../../../server/http/endpoint.ts'
import { base, labsOf, projectParam } from './lab-request.ts'

export const labInventoryEndpoint = endpoint({
  ...{ method: 'GET', path: `${base}/{project_id}/inventory`, owner: 'self', tag: 'v2 projects' },
  params: Type.Object(projectParam),
  query: Type.Object({ format: Type.Optional(InventoryFormat) }),
  summary: 'Read how programs reach the nodes of a project',
  description:
    'The names, kinds, consoles, addresses in the management network and forwarded ports of the nodes, for programs such as Ansible',
  replies: { 200: { description: 'The inventory; as text, if the format is not json', schema: LabInventory } },
  errors: { 404: 'There is no such project' },
  async handle({ params, query: { format = 'json' } }, context) {
    const lab = await labsOf(context).labs.find(params.project_id)
    const { nodes, links, project } = lab.document
    const inventory = inventoryOf({
      name: project.name,
      nodes: [...nodes.values()].map((record) => lab.nodeView(record)),
      links: [...links.values()].map((record) => lab.linkView(record)),
    })
    const headers = { 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff' }
    if (format === 'json') return Response.json(inventory, { headers })
    // The library for YAML is loaded with its first use only.
    const { inventoryTexts } = await import('../../../labs/export/inventory-text.ts')
    return new Response(inventoryTexts[format](inventory), {
      headers: { ...headers, 'Content-Type': 'text/plain; charset=utf-8' },
    })
  },
})
