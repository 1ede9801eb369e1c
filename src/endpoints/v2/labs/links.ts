import { Type } from '@sinclair/typebox'
import { freshLinks } from '../../../labs/links/link-states.ts'
import { checkFilters, createLink, removeLink, updateLink } from '../../../labs/links/links.ts'
import { LabLink, LabLinkCreate, LabLinkUpdate } from '../../../model/lab/link.ts'
import { Uuid } from '../../../model/schema/fields.ts'
import { Filters } from '../../../model/schema/filters.ts'
import { created, type Endpoint, endpoint, noContent, ok } from '../../../server/http/endpoint.ts'
import { noContentAfter } from '../../compute/no-content.ts'
import { base, labsOf, noSuchProject, projectParam } from './lab-request.ts'

const tag = 'v2 links'
const owner = 'self'
const list = `${base}/{project_id}/links`
const path = `${list}/{link_id}`
const inProject = Type.Object(projectParam)
const params = Type.Object({ ...projectParam, link_id: Uuid })
const noSuchLink = 'There is no such project or link, or the project is closed'

export const labLinkEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: list,
    owner,
    tag,
    params: inProject,
    summary: 'List the links of a project',
    replies: { 200: { description: 'The links', schema: Type.Array(LabLink) } },
    errors: { 404: 'There is no such project' },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.find(params.project_id)
      await freshLinks(lab, agentFor)
      return ok([...lab.document.links.values()].map((record) => lab.linkView(record)))
    },
  }),
  endpoint({
    method: 'POST',
    path: list,
    owner,
    tag,
    params: inProject,
    summary: 'Link two ports; the nodes may be running',
    body: LabLinkCreate,
    viewSchema: LabLink,
    replies: { 201: { description: 'Linked', schema: LabLink } },
    errors: {
      404: 'There is no such project, node or port',
      409: 'A port is already linked, or the computes have no addresses for each other',
    },
    async handle({ params, body }, context) {
      const { labs, agentFor } = labsOf(context)
      const { conventions } = context
      return created(await createLink(labs, await labs.lab(params.project_id), body, agentFor, { conventions }))
    },
  }),
  endpoint({
    method: 'GET',
    path,
    owner,
    tag,
    params,
    summary: 'Read a link',
    replies: { 200: { description: 'The link', schema: LabLink } },
    errors: { 404: noSuchLink },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.find(params.project_id)
      await freshLinks(lab, agentFor)
      return ok(lab.linkView(lab.link(params.link_id)))
    },
  }),
  endpoint({
    method: 'PUT',
    path,
    owner,
    tag,
    params,
    summary: 'Change the impairment, suspension or labels of a link; takes effect immediately',
    body: LabLinkUpdate,
    viewSchema: LabLink,
    async current({ params }, context) {
      const lab = await labsOf(context).labs.lab(params.project_id)
      return lab.linkView(lab.link(params.link_id))
    },
    replies: { 200: { description: 'The changed link', schema: LabLink } },
    errors: { 404: noSuchLink },
    async handle({ params, body }, context) {
      const { labs, agentFor } = labsOf(context)
      return ok(await updateLink(await labs.lab(params.project_id), params.link_id, body, agentFor))
    },
  }),
  endpoint({
    method: 'POST',
    path: `${path}/check_filters`,
    owner,
    tag,
    params,
    summary: 'Check filters for a link without applying them; the error says what is wrong, and where',
    body: Filters,
    replies: { 204: { description: 'The link can have these filters' } },
    errors: { 404: noSuchLink, 409: 'A compute cannot compile a filter; the message says what it lacks' },
    async handle({ params, body }, context) {
      const { labs, agentFor } = labsOf(context)
      return noContentAfter(checkFilters(await labs.lab(params.project_id), params.link_id, body, agentFor))
    },
  }),
  endpoint({
    method: 'DELETE',
    path,
    owner,
    tag,
    params,
    summary: 'Delete a link',
    replies: { 204: { description: 'Deleted' } },
    errors: { 404: `${noSuchProject}, or no such link` },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      await removeLink(labs, await labs.lab(params.project_id), params.link_id, agentFor)
      return noContent
    },
  }),
]
