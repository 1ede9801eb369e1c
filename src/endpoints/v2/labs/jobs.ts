import { Type } from '@sinclair/typebox'
import { noSuchJob, withoutCheckResults } from '../../../labs/jobs/jobs.ts'
import { ownsLabs } from '../../../model/access/identity.ts'
import { LabJob, LabJobCreate } from '../../../model/lab/job.ts'
import { Uuid } from '../../../model/schema/fields.ts'
import { type Context, created, type Endpoint, endpoint, noContent, ok } from '../../../server/http/endpoint.ts'
import { base, catalogOf, labsOf, noSuchProject, projectParam } from './lab-request.ts'

const tag = 'v2 jobs'
const owner = 'self'
const params = Type.Object({ job_id: Uuid })
const unknown = 'There is no such job, or it ended more than 15 minutes ago'

/** Whether the client may see a job. A job of several projects needs the right to see all projects. */
const isVisible = ({ project_id }: LabJob, { projects }: Context): boolean =>
  project_id === null ? projects.isWhole : projects.sees(project_id)

/** A job as the client may see it: the checks of another one may be those of tasks that the client is to solve. */
const shownTo = (job: LabJob, { identity }: Context): LabJob =>
  ownsLabs(identity) || job.by === identity.name ? job : withoutCheckResults(job)

/** A job, if the client may see its project; else 404, as for an unknown job. */
async function visibleJob(id: string, context: Context): Promise<LabJob> {
  const job = await catalogOf(context).allJobs.get(id)
  if (isVisible(job, context)) return shownTo(job, context)
  throw noSuchJob(id)
}

export const labJobEndpoints: readonly Endpoint[] = [
  endpoint({
    ...{ method: 'GET', path: '/v2/jobs', owner, tag, scope: 'own' },
    summary: 'List the running jobs, and those that ended in the last 15 minutes',
    replies: { 200: { description: 'The jobs, the oldest first', schema: Type.Array(LabJob) } },
    async handle(_, context) {
      const jobs = await catalogOf(context).allJobs.list()
      return ok(jobs.filter((job) => isVisible(job, context)).map((job) => shownTo(job, context)))
    },
  }),
  endpoint({
    ...{ method: 'GET', path: '/v2/jobs/{job_id}', owner, tag, params, scope: 'own' },
    summary: 'Read a job',
    replies: { 200: { description: 'The job', schema: LabJob } },
    errors: { 404: unknown },
    handle: async ({ params }, context) => ok(await visibleJob(params.job_id, context)),
  }),
  endpoint({
    ...{ method: 'DELETE', path: '/v2/jobs/{job_id}', owner, tag, params, scope: 'own' },
    summary: 'Cancel a running job, or remove an ended one; its nodes stay as they are',
    replies: { 204: { description: 'Done' } },
    errors: { 404: unknown },
    async handle({ params }, context) {
      await catalogOf(context).allJobs.remove((await visibleJob(params.job_id, context)).job_id)
      return noContent
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${base}/{project_id}/jobs`, owner, tag, params: Type.Object(projectParam) },
    summary: 'Start, stop, suspend, resume or reload nodes of a project in a job',
    description:
      'Nodes start in the order of `after`, as the load of their computes allows. The feed of the project has the events ' +
      'job.created, job.updated and job.deleted. A job ends when the service ends; its nodes keep running.',
    body: LabJobCreate,
    replies: { 201: { description: 'The running job', schema: LabJob } },
    errors: {
      400: 'The members `after` of the nodes form a cycle',
      404: noSuchProject,
      429: 'Too many jobs are running',
    },
    async handle({ params, body }, context) {
      const { labs, agentFor } = labsOf(context)
      const { id, listed } = labs.timers.act(await labs.lab(params.project_id), body, agentFor)
      await listed
      return created(labs.jobs.get(id))
    },
  }),
]
