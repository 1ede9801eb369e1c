import { Type } from '@sinclair/typebox'
import { showPresence } from '../../../labs/presence.ts'
import { LabPresence, LabPresenceInput } from '../../../model/lab/presence.ts'
import { type Endpoint, endpoint, ok } from '../../../server/http/endpoint.ts'
import { base, labsOf, noSuchProject, projectParam } from './lab-request.ts'

export const labPresenceEndpoint: Endpoint = endpoint({
  ...{ method: 'POST', path: `${base}/{project_id}/presence`, owner: 'self', tag: 'v2 projects', role: 'read' },
  summary: 'Show your selection to the other clients of a project for 15 s, with the event `presence` of its feed',
  params: Type.Object(projectParam),
  body: LabPresenceInput,
  replies: { 200: { description: 'The selections of all clients at the project', schema: Type.Array(LabPresence) } },
  errors: { 404: noSuchProject, 429: '64 other clients are already in the project' },
  async handle({ params, body }, context) {
    const { labs } = labsOf(context)
    const lab = await labs.lab(params.project_id)
    return ok(showPresence(lab, context.identity, body, (isChange) => labs.registry.tellPresent(lab, isChange)))
  },
})
