import { Type } from '@sinclair/typebox'
import { jobHeader } from '../../../labs/jobs/failure-reason.ts'
import { checkTasks } from '../../../labs/tasks/check-tasks.ts'
import { tasksView } from '../../../labs/tasks/tasks.ts'
import { LabJob } from '../../../model/lab/job.ts'
import { LabTasks } from '../../../model/lab/task.ts'
import { type Endpoint, endpoint, ok } from '../../../server/http/endpoint.ts'
import { base, labsOf, noSuchProject, projectParam } from './lab-request.ts'

const tag = 'v2 projects'
const owner = 'self'
const params = Type.Object(projectParam)

export const labTaskEndpoints: readonly Endpoint[] = [
  endpoint({
    ...{ method: 'GET', path: `${base}/{project_id}/tasks`, owner, tag, params },
    summary: 'Read the tasks of a project, and what was done when they were checked last',
    description:
      'Their checks are not shown: only a lab file that is exported by who may change all projects has them.',
    replies: { 200: { description: 'The tasks; none for a project without tasks', schema: LabTasks } },
    errors: { 404: 'There is no such project' },
    async handle({ params }, context) {
      return ok(tasksView(await labsOf(context).labs.find(params.project_id)))
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${base}/{project_id}/tasks/check`, owner, tag, params },
    summary: 'Check the tasks of a project in a job; the nodes must be running',
    description:
      'If such a job runs already, it is the answer. The job has `tasks`, and not their checks. When it is done, the project has the new results.',
    bodyKind: 'ignored',
    replies: { 201: { description: 'The running job', schema: LabJob } },
    errors: {
      404: noSuchProject,
      409: 'The project has no tasks with checks',
      429: 'Too many jobs are running',
      503: 'A compute of the project is not connected: the last results stay',
    },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.lab(params.project_id)
      const job = await checkTasks(labs, lab, context.identity.name, agentFor)
      return Response.json(job, { status: 201, headers: { [jobHeader]: job.job_id } })
    },
  }),
]
