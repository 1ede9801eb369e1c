import { type Static, Type } from '@sinclair/typebox'
import { AccessToken, TokenLimits } from '../access/access-token.ts'
import { closedSchema, maybe, Name, nullable, objectSchema, oneOf, Uuid } from '../schema/fields.ts'

/** Most students of a class: each has a lab. */
const maxStudents = 200
/** Longest lifetime of a link for a student, s: a year. */
const maxLifetimeS = 366 * 86_400

/** The first part of the names of its labs, which is why it is shorter than other names. */
const ClassName = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: Name.pattern as string,
  expects: 'a string of 1 to 100 characters, in one line',
})
const StudentName = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: Name.pattern as string,
  expects: 'a string of 1 to 100 characters, in one line',
})
const Students = (description: string) => Type.Array(StudentName, { minItems: 1, maxItems: maxStudents, description })

/** A class as clients name it in paths. */
export const classParam = { class: Type.String({ minLength: 1, maxLength: 100, description: 'Name of the class' }) }

/** Of which class a lab is, and whose. */
export type LabClass = Static<typeof LabClass>
export const LabClass = objectSchema('LabClass', 'The class of a project, and the student whose project it is', {
  name: ClassName,
  student: StudentName,
  start_snapshot_id: Type.Optional(
    Type.String({ ...Uuid, description: 'The snapshot to which the project is reset; absent: it is being made' }),
  ),
})

const ClassStudent = objectSchema('ClassStudent', 'A student of a class', {
  student: StudentName,
  project_id: Uuid,
  project: Type.String({ description: 'Name of the project' }),
  /** Of a link that can be used now. */
  token: nullable(AccessToken),
})

/** A class: students, each with a lab of their own. */
export type Class = Static<typeof Class>
export const Class = objectSchema('Class', 'Students, each of whom has a copy of a project', {
  name: ClassName,
  students: Type.Array(ClassStudent, { description: 'By name' }),
})

export type ClassCreate = Static<typeof ClassCreate>
export const ClassCreate = closedSchema('ClassCreate', 'A class, or more students of one', {
  name: ClassName,
  project_id: Type.String({
    minLength: 1,
    maxLength: 255,
    description: 'Id or name of the project of which each student gets a copy; its nodes must be stopped',
  }),
  students: Students('Names of the students; who has a project in the class already keeps it'),
})

export type ClassSelection = Static<typeof ClassSelection>
export const ClassSelection = closedSchema('ClassSelection', 'Students of a class', {
  students: maybe(Students('Names of students; absent: all')),
})

export type ClassLinksCreate = Static<typeof ClassLinksCreate>
export const ClassLinksCreate = closedSchema('ClassLinksCreate', 'Links for students', {
  students: maybe(Students('Names of students; absent: all')),
  role: maybe(
    oneOf(['read', 'operate'], {
      default: 'operate',
      description: 'read: look at the project; operate: change it, start its nodes and type on their consoles',
    }),
  ),
  limits: maybe(TokenLimits),
  expires_in_s: maybe(
    Type.Integer({ minimum: 1, maximum: maxLifetimeS, description: 'Lifetime, seconds. Default: unlimited' }),
  ),
})

/** The link of a student. Only the answer to its creation has its secret. */
export type ClassLink = Static<typeof ClassLink>
export const ClassLink = objectSchema('ClassLink', 'The link of a student; it is not shown again', {
  student: StudentName,
  project_id: Uuid,
  project: Type.String({ description: 'Name of the project' }),
  token_id: Type.String(),
  token: Type.String({ description: 'The token of the link, for clients other than the page' }),
  path: Type.String({ description: 'The page of the student, to be added to the address of the service' }),
  expires_at: AccessToken.properties.expires_at,
})
