import { Type } from '@sinclair/typebox'
import { useTemplate } from '../../../labs/templates.ts'
import { LabNode } from '../../../model/lab/node.ts'
import { LabTemplate, LabTemplateCreate, LabTemplateUpdate, LabTemplateUse } from '../../../model/lab/template.ts'
import { created, type Endpoint, endpoint, noContent, ok } from '../../../server/http/endpoint.ts'
import { base, catalogOf, labsOf, noSuchProject, projectParam } from './lab-request.ts'

const tag = 'v2 templates'
const owner = 'self'
const list = '/v2/templates'
const path = `${list}/{template_id}`
const templateParam = {
  template_id: Type.String({ minLength: 1, maxLength: 255, description: 'Id of the template, or its name' }),
}
const params = Type.Object(templateParam)
const inProject = Type.Object({ ...projectParam, ...templateParam })
const noSuchTemplate = 'There is no such template'
const builtIn = 'The template is built in'

export const labTemplateEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: list,
    owner,
    tag,
    scope: 'shared',
    summary: 'List the templates, the built-in ones first',
    replies: { 200: { description: 'The templates', schema: Type.Array(LabTemplate) } },
    handle: (_, context) => ok(catalogOf(context).templates.list()),
  }),
  endpoint({
    method: 'POST',
    path: list,
    owner,
    tag,
    summary: 'Create a template, with the next free name if its name is taken; unknown members are stored as they are',
    body: LabTemplateCreate,
    replies: { 201: { description: 'The template', schema: LabTemplate } },
    errors: { 409: 'The id is taken', 507: 'The disk is nearly full' },
    async handle({ body }, context) {
      const keepsName = context.conventions !== undefined
      return created(await catalogOf(context).templates.create(body, { keepsName }))
    },
  }),
  endpoint({
    method: 'GET',
    path,
    owner,
    tag,
    params,
    scope: 'shared',
    summary: 'Read a template',
    replies: { 200: { description: 'The template', schema: LabTemplate } },
    errors: { 404: noSuchTemplate },
    handle: ({ params }, context) => ok(catalogOf(context).templates.get(params.template_id)),
  }),
  endpoint({
    method: 'PUT',
    path,
    owner,
    tag,
    params,
    summary: 'Change a template',
    body: LabTemplateUpdate,
    replies: { 200: { description: 'The changed template', schema: LabTemplate } },
    errors: { 403: builtIn, 404: noSuchTemplate, 507: 'The disk is nearly full' },
    handle: async ({ params, body }, context) =>
      ok(await catalogOf(context).templates.update(params.template_id, body)),
  }),
  endpoint({
    method: 'DELETE',
    path,
    owner,
    tag,
    params,
    summary: 'Delete a template; nodes created from it stay',
    replies: { 204: { description: 'Deleted' } },
    errors: { 403: builtIn, 404: noSuchTemplate },
    async handle({ params }, context) {
      await catalogOf(context).templates.remove(params.template_id)
      return noContent
    },
  }),
  endpoint({
    method: 'POST',
    path: `${path}/duplicate`,
    owner,
    tag,
    params,
    summary: 'Copy a template under a new id',
    bodyKind: 'ignored',
    replies: { 201: { description: 'The copy', schema: LabTemplate } },
    errors: { 404: noSuchTemplate, 507: 'The disk is nearly full' },
    handle: async ({ params }, context) => created(await catalogOf(context).templates.duplicate(params.template_id)),
  }),
  endpoint({
    ...{ method: 'POST', path: `${base}/{project_id}/templates/{template_id}`, owner, tag, params: inProject },
    summary: 'Create a node from a template',
    body: LabTemplateUse,
    replies: { 201: { description: 'The node', schema: LabNode } },
    errors: { 404: `${noSuchProject}, or no such template`, 409: 'The compute cannot create it; the message says why' },
    async handle({ params, body }, context) {
      const { labs, agentFor } = labsOf(context)
      await labs.templates.reload()
      const template = labs.templates.get(params.template_id)
      return created(
        await useTemplate(labs, await labs.lab(params.project_id), template, {
          use: body,
          agentFor,
          conventions: context.conventions,
        }),
      )
    },
  }),
]
