import { type Endpoint, endpoint, noContent } from '../http/endpoint.ts'
import { noSuchProject, projectParams as params } from '../http/params.ts'

/** Close and delete: the same in both faces. */
export function projectEnds(base: string, tag: string): readonly Endpoint[] {
  const errors = { 404: noSuchProject, 409: 'The project is being closed' }
  return [
    endpoint({
      method: 'DELETE',
      path: `${base}/{project_id}`,
      endsProject: true,
      tag,
      summary: 'Delete a project from disk',
      params,
      replies: { 204: { description: 'Deleted' } },
      errors,
      async handle({ params }, { agent }) {
        await agent.projects.remove(params.project_id)
        return noContent
      },
    }),
    endpoint({
      method: 'POST',
      path: `${base}/{project_id}/close`,
      endsProject: true,
      tag,
      summary: 'Close a project: stop its nodes, release their ports; a temporary one is deleted',
      params,
      bodyKind: 'ignored',
      replies: { 204: { description: 'Closed' } },
      errors,
      async handle({ params }, { agent }) {
        await agent.projects.close(params.project_id)
        return noContent
      },
    }),
  ]
}
