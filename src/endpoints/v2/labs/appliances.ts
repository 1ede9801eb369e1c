import { Type } from '@sinclair/typebox'
import { applianceImages } from '../../../labs/appliance-images.ts'
import { requireTrust, untrustedNodes } from '../../../labs/plan/trust.ts'
import { ApplianceImport, ApplianceInput } from '../../../model/lab/appliance.ts'
import { created, type Endpoint, endpoint } from '../../../server/http/endpoint.ts'
import { agentsOf, catalogOf, notTrusted, trustQuery } from './lab-request.ts'

export const applianceEndpoints: readonly Endpoint[] = [
  endpoint({
    ...{ method: 'POST', path: '/v2/templates/import', owner: 'self', tag: 'v2 templates' },
    summary: 'Create a template from a GNS3 appliance (*.gns3a)',
    description:
      'An image is found by its MD5 on any connected compute, under any name. For a missing image the template names the file to upload.',
    query: Type.Object(trustQuery),
    body: ApplianceInput,
    replies: { 201: { description: 'The template', schema: ApplianceImport } },
    errors: { 403: notTrusted, 507: 'The disk is nearly full' },
    async handle({ query, body }, context) {
      const catalog = catalogOf(context)
      const appliance = await context.read('appliance', { text: body.text, version: body.version ?? undefined })
      const { computes } = catalog
      const agentFor = agentsOf(catalog, context)
      const images = await applianceImages(appliance.images, appliance.kind, { computes, agentFor })
      const named = Object.fromEntries(images.map(({ setting, image }) => [setting, image]))
      const input = { ...appliance.template, ...named, ...(body.name != null && { name: body.name }) }
      const node = { name: input.name, node_type: input.template_type, properties: input }
      await requireTrust(catalog.trust, await untrustedNodes(catalog.trust, [node]), query.trust === 'true')
      const template = await catalog.templates.create(input)
      const { version = null, versions, leftOut } = appliance
      return created({ template, version, versions: [...versions], images, left_out: leftOut })
    },
  }),
]
