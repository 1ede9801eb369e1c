import { Type } from '@sinclair/typebox'
import {
  createClass,
  deleteClass,
  listClasses,
  resetClass,
  type Student,
  studentsOf,
} from '../../../labs/classes/classes.ts'
import type { WorkFor } from '../../../labs/classes/student-lab.ts'
import { jobHeader } from '../../../labs/jobs/failure-reason.ts'
import type { StartedJob } from '../../../labs/jobs/jobs.ts'
import { notFound } from '../../../lib/errors/api-error.ts'
import {
  Class,
  ClassCreate,
  ClassLink,
  ClassLinksCreate,
  ClassSelection,
  classParam,
} from '../../../model/lab/class.ts'
import { LabJob } from '../../../model/lab/job.ts'
import { linksOf, revokeAll, revokeLinks, validLinkOf } from '../../../server/auth/class-links.ts'
import type { Tokens } from '../../../server/auth/tokens.ts'
import { type Context, created, type Endpoint, endpoint, ok } from '../../../server/http/endpoint.ts'
import { agentsOf, catalogOf } from './lab-request.ts'

const path = '/v2/classes'
const all = { owner: 'self', tag: 'v2 classes', role: 'admin' } as const
const params = Type.Object(classParam)
const noSuchClass = 'There is no such class'
const noTokens = 'This service has no tokens, by which students are let in: set token in its configuration first'
const started = { 201: { description: 'The running job', schema: LabJob } }
const busy = 'Another job works on the class'
const tooMany = 'Too many jobs are running'

/** Classes: for each student a copy of a lab, and a link to it. */
export const classEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path,
    ...all,
    summary: 'List the classes with their students',
    replies: { 200: { description: 'The classes, by name', schema: Type.Array(Class) } },
    async handle(_, context) {
      const tokens = (await context.tokens?.list()) ?? []
      return ok(
        listClasses(catalogOf(context)).map(({ name, students }) => ({
          name,
          students: students.map(({ student, project_id, project }) => ({
            student,
            project_id,
            project,
            token: validLinkOf({ student, project_id }, tokens),
          })),
        })),
      )
    },
  }),
  endpoint({
    method: 'POST',
    path,
    ...all,
    summary: 'Give each student of a class a copy of a project, in a job',
    description:
      'The copies are named CLASS-STUDENT, are closed, and have other MAC addresses. Each has a snapshot of its state, to which a reset goes ' +
      'back. With the name of a class that is there, its new students are added.',
    body: ClassCreate,
    replies: started,
    errors: {
      404: 'There is no such project',
      409: `The name of a copy is taken. ${busy}`,
      429: tooMany,
    },
    handle: async ({ body }, context) =>
      answerWith(await createClass(catalogOf(context), body, workFor(context)), context),
  }),
  endpoint({
    ...{ method: 'POST', path: `${path}/{class}/links`, ...all, params },
    summary: 'Make links for students of a class, in place of those that they have',
    description:
      'A link opens the project of its student in the page, without another sign-in. Only this response has it; the links that the students ' +
      'had become invalid.',
    body: ClassLinksCreate,
    replies: { 201: { description: 'The links, by student', schema: Type.Array(ClassLink) } },
    errors: { 404: `${noSuchClass} or student. ${noTokens}`, 409: 'Too many tokens', 507: 'The disk is full' },
    async handle({ params, body }, context) {
      const students = studentsOf(catalogOf(context), params.class, body.students)
      const tokens = requireTokens(context)
      const { limits, expires_in_s, role } = body
      const links: ClassLink[] = []
      for (const { student, project_id, project } of students) {
        const { token_id, token, expires_at } = await tokens.create({
          name: student,
          role: role ?? 'operate',
          projects: [project_id],
          limits: limits ?? {},
          expires_in_s: expires_in_s ?? null,
        })
        links.push({ student, project_id, project, token_id, token, path: `/#/class/${token}`, expires_at })
      }
      // Of two requests at the same time the links of the later one stay.
      const all = await tokens.list()
      const older = links.flatMap((link) => {
        const own = linksOf(link, all)
        return own.slice(
          0,
          own.findIndex(({ token_id }) => token_id === link.token_id),
        )
      })
      await revokeAll(tokens, context.tickets, older)
      return created(links)
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${path}/{class}/reset`, ...all, params },
    summary: 'Put projects of a class back to how their students got them, in a job',
    body: ClassSelection,
    replies: started,
    errors: { 404: `${noSuchClass} or student`, 409: busy, 429: tooMany },
    handle: async ({ params, body }, context) =>
      answerWith(await resetClass(catalogOf(context), params.class, body.students, workFor(context)), context),
  }),
  endpoint({
    method: 'DELETE',
    path: `${path}/{class}`,
    ...all,
    params,
    summary: 'Delete a class in a job: its links become invalid, then its projects are deleted',
    replies: started,
    errors: { 404: noSuchClass, 409: busy, 429: tooMany },
    async handle({ params }, context) {
      const revoke = (students: readonly Student[]) => revokeLinks(context, students)
      const job = await deleteClass(catalogOf(context), params.class, workFor(context), revoke)
      return answerWith(job, context)
    },
  }),
]

function workFor(context: Context): WorkFor {
  return { agentFor: agentsOf(catalogOf(context), context), caller: context.caller }
}

async function answerWith({ id, listed }: StartedJob, context: Context): Promise<Response> {
  await listed
  return Response.json(catalogOf(context).jobs.get(id), { status: 201, headers: { [jobHeader]: id } })
}

function requireTokens({ tokens }: Context): Tokens {
  if (tokens === undefined) throw notFound(noTokens)
  return tokens
}
