import { type Static, Type } from '@sinclair/typebox'
import type { Desired } from '../../../labfile/desired.ts'
import { projectIdOf } from '../../../labfile/ids.ts'
import { schemaPath } from '../../../labfile/json-schema.ts'
import { isSegmentKind } from '../../../labfile/segment-kinds.ts'
import { applyPlan } from '../../../labs/apply/executor.ts'
import { requireOwn, requireRevision, revisionTag } from '../../../labs/apply/preconditions.ts'
import { changesAnything, isInterrupted, planNew, planView, prepare } from '../../../labs/apply/prepare.ts'
import { labFileOf } from '../../../labs/export/lab-file.ts'
import { jobHeader } from '../../../labs/jobs/failure-reason.ts'
import { withoutNulls } from '../../../labs/lab/fields.ts'
import type { Lab } from '../../../labs/lab/lab.ts'
import { freshLinks } from '../../../labs/links/link-states.ts'
import { runChecks } from '../../../labs/nodes/checks.ts'
import { requireTrust, untrustedIn } from '../../../labs/plan/trust.ts'
import { mayChangeTasks } from '../../../labs/tasks/tasks.ts'
import { ignore } from '../../../lib/async/ignore.ts'
import { ApiError, badRequest, tooLarge } from '../../../lib/errors/api-error.ts'
import { readText } from '../../../lib/http/body.ts'
import { jsonFault } from '../../../lib/http/json-fault.ts'
import { parseJson } from '../../../lib/http/whole-pairs.ts'
import { omit } from '../../../lib/omit.ts'
import { Revert } from '../../../lib/revert.ts'
import { ownsLabs } from '../../../model/access/identity.ts'
import { LabJob } from '../../../model/lab/job.ts'
import { applyOptions, LabApply, LabCheckRun, LabPlan, LabTopology } from '../../../model/lab/topology.ts'
import { isUuid, oneOf } from '../../../model/schema/fields.ts'
import { validate } from '../../../model/validation/validate.ts'
import { type Context, type Endpoint, endpoint } from '../../../server/http/endpoint.ts'
import {
  base,
  labsOf,
  noSuchProject,
  notTrusted,
  projectParam,
  requireNotHandedOut,
  trustQuery,
} from './lab-request.ts'

const tag = 'v2 projects'
const owner = 'self'
const params = Type.Object(projectParam)
const path = `${base}/{project_id}/topology`
/** Largest lab file with all the files that it names. */
const maxBytes = 16 << 20

const flag = (description: string) => Type.Optional(oneOf(['true', 'false'], { default: 'false', description }))
const flags = Object.fromEntries(
  Object.entries(applyOptions).map(([name, schema]) => [name, flag(String(schema.description))]),
) as Record<keyof typeof applyOptions, ReturnType<typeof flag>>
const query = Type.Object({
  dry_run: flag('Return the plan, and change nothing'),
  name: Type.Optional(
    Type.String({ minLength: 1, maxLength: 63, description: 'Name of the lab, if the path has an id' }),
  ),
  ...flags,
})
const wrongFile = 'The body or the lab file is not valid, or an image is missing: `errors` lists the faults of the file'

/** A lab file in a body: alone as YAML, or in JSON with the files that it names. */
async function readBody<T extends typeof LabApply | typeof LabCheckRun>(
  schema: T,
  request: Request,
): Promise<Static<T>> {
  const text = await readText(request, maxBytes)
  if (text.trim() === '') throw badRequest('body: empty, expected a lab file')
  const media = request.headers.get('content-type') ?? ''
  if (/yaml/i.test(media)) {
    if (text.length > 1 << 20) throw tooLarge('body: a lab file has at most 1 MiB')
    return { document: text }
  }
  try {
    return validate(schema, parseJson(text))
  } catch (cause) {
    if (cause instanceof ApiError) throw cause
    const hint = 'a lab file alone needs the header Content-Type: application/yaml'
    throw badRequest(`body: not JSON: ${jsonFault(text)}; ${hint}`)
  }
}

/** The lab that a path names; it is opened unless `mayBeClosed`. Undefined: there is none. */
async function labNamed(word: string, context: Context, mayBeClosed: boolean) {
  const { labs, agentFor } = labsOf(context)
  try {
    const lab = await labs.find(word)
    if (lab.isOpen || mayBeClosed) return lab
    await labs.lifecycle.open(lab.id, agentFor)
    return await labs.lab(lab.id)
  } catch (error) {
    if (error instanceof ApiError && error.code === 'no-such-project') return undefined
    throw error
  }
}

const answer = (status: number, body: LabPlan, headers: Record<string, string>) =>
  Response.json(body, { status, headers })

export const labTopologyEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path,
    owner,
    tag,
    params,
    query: Type.Object({
      format: Type.Optional(
        oneOf(['json', 'yaml'], { default: 'json', description: 'yaml: a lab file that creates an equal project' }),
      ),
    }),
    summary: 'Read the nodes, links and segments of a project',
    replies: { 200: { description: 'The topology; the revision is the ETag', schema: LabTopology } },
    errors: { 404: 'There is no such project' },
    async handle({ params, query, request }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.find(params.project_id)
      const withChecks = ownsLabs(context.identity)
      const fileOptions = { schemaUrl: new URL(schemaPath, request.url).href, withChecks }
      if (query.format === 'yaml')
        return new Response(await labFileOf(lab, fileOptions, agentFor), {
          headers: {
            'Content-Type': 'application/yaml; charset=utf-8',
            'Cache-Control': 'no-cache',
            'X-Content-Type-Options': 'nosniff',
          },
        })
      await freshLinks(lab, agentFor)
      const headers = { ETag: revisionTag(lab.document.project), 'Cache-Control': 'no-cache' }
      const known = request.headers.get('if-none-match')?.split(',') ?? []
      if (known.some((tag) => tag.trim().replace(/^W\//, '') === headers.ETag))
        return new Response(null, { status: 304, headers })
      return Response.json(topologyOf(lab), { headers })
    },
  }),
  endpoint({
    method: 'PUT',
    path,
    owner,
    tag,
    params,
    query,
    scope: 'own',
    makesLab: true,
    summary: 'Apply a lab file to a project; the project is created if it does not exist',
    description:
      'Compares the project with the file, and runs the steps from one to the other in a job: all of them, or none. Steps that disturb ' +
      'running nodes or lose disks are withheld unless an option allows them. The options are in the query, or in the JSON body. ' +
      'The feed of the project has an event job.step for each step.',
    bodyKind: 'raw',
    bodyShown: LabApply,
    replies: {
      200: { description: 'The plan: of a dry run, or when no step is needed', schema: LabPlan },
      202: { description: 'The plan, and the job that runs its steps', schema: LabPlan },
    },
    errors: {
      400: wrongFile,
      403: notTrusted,
      409: 'The project was not created from a lab file, or another project has the name',
      412: 'The project has changed in the meantime',
      413: 'The body is larger than 16 MiB',
      429: 'Too many jobs are running',
      507: 'The disk is nearly full',
    },
    async handle({ params: { project_id: word }, query, request }, context) {
      const { labs, agentFor } = labsOf(context)
      const { document, files = {}, vars = {}, ttl_s, ttl_deletes, ...inBody } = await readBody(LabApply, request)
      const options = { ...inBody, ...optionsIn(query) }
      const isDry = query.dry_run === 'true'
      const by = context.identity.name
      const found = await labNamed(word, context, isDry)
      const name = query.name ?? (isUuid(word) ? undefined : word)
      // A lab that was larger before the limit can still be applied.
      const maxObjects = Math.max(labs.limits().lab_objects, found?.document.objects ?? 0)
      const toRead = { document, files, vars, maxObjects, ...(name !== undefined && { name }) }
      const read = await context.read('labFile', toRead)
      const desired = mayChangeTasks(context.identity, found?.document.tasks) ? read : omit(read, 'tasks')
      const ifMatch = request.headers.get('if-match')
      const isTrusted = options.trust === true
      if (!isDry) await requireTrust(labs.trust, await untrustedIn(labs.trust, desired), isTrusted)
      if (found === undefined && ifMatch !== null) throw new ApiError(412, `If-Match: there is no project ${word}`)
      const project_id = found?.id ?? newIdOf(word, desired, context)
      // An apply of a new lab is planned first, too: a wrong file creates no project.
      const plannedNew = found === undefined ? await planNew(labs, desired, options, agentFor) : undefined
      if (plannedNew !== undefined && isDry)
        return answer(200, planView(plannedNew, desired, { project_id, revision: 0 }), {})
      const { lab, isNew } = found ? { lab: found, isNew: false } : await newLab(project_id, desired, context)
      // Another client may have made it meanwhile, and a lab that was renamed keeps the id that follows from its first name.
      if (!isNew) context.projects.require(lab.id, word)
      await using revert = new Revert(ignore('the client gets the first error'))
      if (isNew) revert.add(() => labs.lifecycle.remove(lab.id, agentFor))
      const isRenamed = desired.lab !== lab.document.project.name
      if (isRenamed || ttl_deletes === true) requireNotHandedOut(lab.document.project, context)
      requireOwn(lab, by, options)
      requireRevision(lab, ifMatch)
      if (isRenamed) context.projects.requireName(lab.id, desired.lab)
      const prepared = await prepare(labs, lab, desired, options, agentFor)
      // Only after the checks: a refused file does not change the time.
      if (!isDry) await labs.timers.stopAfter(lab, { ttl_s, ttl_deletes })
      const { revision, stop_at } = lab.document.project
      const plan = {
        ...planView(prepared.plan, desired, { project_id: lab.id, revision }),
        ...(isInterrupted(labs, lab) && { interrupted: true as const }),
        ...withoutNulls({ stop_at }),
      }
      const headers = { ETag: revisionTag({ revision }) }
      if (isDry || !changesAnything(lab, by, prepared)) {
        revert.commit()
        return answer(200, plan, headers)
      }
      const { id, listed } = applyPlan(labs, lab, { prepared, by, isNew }, agentFor)
      await listed
      revert.commit()
      return answer(202, { ...plan, job_id: id }, { ...headers, [jobHeader]: id, Location: `/v2/jobs/${id}` })
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${base}/{project_id}/checks`, owner, tag, params },
    query: Type.Object(trustQuery),
    summary: 'Run the checks of a lab file in a job; the nodes must be running',
    bodyKind: 'raw',
    bodyShown: LabCheckRun,
    replies: { 201: { description: 'The running job', schema: LabJob } },
    errors: {
      400: wrongFile,
      403: notTrusted,
      404: noSuchProject,
      413: 'The body is larger than 16 MiB',
      429: 'Too many jobs are running',
    },
    async handle({ params, query, request }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.lab(params.project_id)
      const { document, files = {}, vars = {}, only } = await readBody(LabCheckRun, request)
      const desired = await context.read('labFile', {
        document,
        files,
        vars,
        name: lab.document.project.name,
        maxObjects: Math.max(labs.limits().lab_objects, lab.document.objects),
      })
      const unknown = only?.find((name) => !desired.checks.some((it) => it.name === name))
      if (unknown !== undefined)
        throw badRequest(`body.only: the lab file has no check ${JSON.stringify(unknown.slice(0, 100))}`)
      const checks = desired.checks.filter(({ name }) => only?.includes(name) !== false)
      if (checks.length === 0) throw badRequest('body: the lab file has no checks')
      await requireTrust(labs.trust, await untrustedIn(labs.trust, desired), query.trust === 'true')
      const { id, listed } = runChecks(labs, lab, { checks, by: context.identity.name }, agentFor)
      await listed
      return Response.json(labs.jobs.get(id), { status: 201, headers: { [jobHeader]: id } })
    },
  }),
]

/** The options of an apply that the query sets. */
function optionsIn(query: Static<typeof flagsOnly>): Static<typeof appliedOptions> {
  return Object.fromEntries(
    Object.keys(applyOptions).flatMap((name) => {
      const value = query[name as keyof typeof applyOptions]
      return value === undefined ? [] : [[name, value === 'true']]
    }),
  )
}
const flagsOnly = Type.Object(flags)
const appliedOptions = Type.Object(applyOptions)

/** The nodes and links of a lab. */
function topologyOf(lab: Lab): LabTopology {
  const nodes = [...lab.document.nodes.values()].map((record) => lab.nodeView(record))
  return {
    revision: lab.document.project.revision,
    nodes: nodes.filter(({ node_type }) => !isSegmentKind(node_type)),
    links: [...lab.document.links.values()].map((record) => lab.linkView(record)),
    segments: nodes.filter(({ node_type }) => isSegmentKind(node_type)),
  }
}

/** The id of the project that a lab file makes. 403 when the client may not make it. */
function newIdOf(word: string, { lab: name }: Desired, { projects }: Context): string {
  const project_id = isUuid(word) ? word : projectIdOf(name)
  // The id of a lab file follows from its name, and names no other project.
  projects.requireNew(project_id === projectIdOf(name) ? { name } : { project_id, name })
  return project_id
}

/** Creates the project of a lab file, empty and open; or finds it, when another request creates it at the same time. */
async function newLab(project_id: string, { lab: name, nodes }: Desired, context: Context) {
  const { labs, agentFor } = labsOf(context)
  const compute_id = nodes.find((node) => node.compute_id !== undefined)?.compute_id
  const input = { name, project_id, ...(compute_id !== undefined && { compute_id }) }
  const created = labs.creation.create(input, agentFor, {
    lastApplied: { by: context.identity.name },
    scope: context.projects.scope,
  })
  const isNew = await created.then(
    () => true,
    (error: unknown) => {
      if (error instanceof ApiError && error.code === 'project-exists') return false
      throw error
    },
  )
  return { lab: await labs.lab(project_id), isNew }
}
