import { mapLimit } from '../../lib/async/map-limit.ts'
import { ApiError, badRequest, conflict, notFound } from '../../lib/errors/api-error.ts'
import { compareText } from '../../lib/text/compare-text.ts'
import type { ClassCreate, LabClass } from '../../model/lab/class.ts'
import type { LabJob } from '../../model/lab/job.ts'
import { nameKey as keyOfName } from '../../model/lab/names.ts'
import type { LabCatalog } from '../catalog.ts'
import { reasonOf } from '../jobs/failure-reason.ts'
import type { StartedJob } from '../jobs/jobs.ts'
import { type JobProject, progressOfProjects } from '../jobs/project-progress.ts'
import { requireName } from '../lab/lab-name.ts'
import type { StudentLabWork, WorkFor } from './student-lab.ts'

// A class has no record of its own: it is the labs that name it (`LabProject.class`). Which tokens are its links: server/auth/class-links.ts.

/** Names that look the same are the same. */
const nameKey = (name: string): string => keyOfName(name.normalize('NFC'))

/** Labs of a class that are copied, reset or deleted at the same time. */
const maxAtOnce = 2

/** A student of a class, and the lab. */
export interface Student extends LabClass {
  readonly project_id: string
  /** Name of the lab. */
  readonly project: string
}

/** What a job does with the lab of a student, one after the other; the first is asked of the lab `of`, the others of the student's own. */
interface Part extends JobProject {
  readonly works: readonly { readonly of: string; readonly work: StudentLabWork }[]
}

type ClassAction = Extract<LabJob['action'], `class-${string}`>

/** All students, by class and name. */
function allStudents({ registry }: LabCatalog): Student[] {
  return registry
    .all()
    .flatMap(([project_id, { name, class: ofClass, unfinished }]) =>
      ofClass === undefined || unfinished ? [] : [{ ...ofClass, project_id, project: name }],
    )
    .sort(
      (a, b) => compareText(nameKey(a.name), nameKey(b.name)) || compareText(nameKey(a.student), nameKey(b.student)),
    )
}

/** The classes, by name, with their students. */
export function listClasses(catalog: LabCatalog): { name: string; students: Student[] }[] {
  const classes = new Map<string, { name: string; students: Student[] }>()
  for (const student of allStudents(catalog)) {
    const key = nameKey(student.name)
    const known = classes.get(key)
    if (known === undefined) classes.set(key, { name: student.name, students: [student] })
    else known.students.push(student)
  }
  return [...classes.values()]
}

/** The students of a class, or those of the given names. 404. */
export function studentsOf(catalog: LabCatalog, className: string, names?: readonly string[] | null): Student[] {
  const all = allStudents(catalog).filter(({ name }) => nameKey(name) === nameKey(className))
  if (all.length === 0) throw notFound(`class: there is no class ${className}`)
  if (names == null) return all
  const byName = new Map(all.map((it) => [nameKey(it.student), it]))
  return requireUnique(names).map((name) => {
    const found = byName.get(nameKey(name))
    if (found === undefined) throw notFound(`students: the class ${className} has no student ${name}`)
    return found
  })
}

/**
 * Makes a class, or adds students to it, by a job: each student gets a copy of the lab, with a snapshot of it as it is now. Who has a lab in the
 * class keeps it, so that the same request goes on with what a broken job has left. 400, 404, 409 before anything is changed, 429.
 */
export async function createClass(
  catalog: LabCatalog,
  { name, project_id, students }: ClassCreate,
  by: WorkFor,
): Promise<StartedJob> {
  const { registry } = catalog
  await catalog.cleanedUp()
  const source = registry.idOf(project_id)
  if (!registry.has(source))
    throw notFound(`project_id: there is no project ${project_id}`, { code: 'no-such-project' })
  const known = allStudents(catalog).filter((it) => nameKey(it.name) === nameKey(name))
  if (/^\.\.?$/.test(name)) throw badRequest('name: a class cannot be named . or .., which no path can name')
  const className = known[0]?.name ?? name.normalize('NFC')
  const byName = new Map(known.map((it) => [nameKey(it.student), it]))
  const parts: Part[] = []
  for (const given of requireUnique(students)) {
    const student = given.normalize('NFC')
    const own = byName.get(nameKey(student))
    const lab = own ?? { project_id: crypto.randomUUID(), project: await newLabName(catalog, className, student) }
    const keep = { of: lab.project_id, work: { action: 'keep-start' } } as const
    if (own !== undefined) {
      parts.push(newPart(lab, own.start_snapshot_id === undefined ? [keep] : []))
      continue
    }
    const copy = { action: 'copy', project_id: lab.project_id, name: lab.project } as const
    parts.push(newPart(lab, [{ of: source, work: { ...copy, class: { name: className, student } } }, keep]))
  }
  return runOnClass(catalog, 'class-create', className, parts, by)
}

/** The name of a new lab of a class. 409 when another lab has it, but for one that a broken copy has left. */
async function newLabName({ registry }: LabCatalog, className: string, student: string): Promise<string> {
  const name = `${className}-${student}`
  requireName(name)
  const isLeft = registry.all().some(([, head]) => head.unfinished && nameKey(head.name) === nameKey(name))
  if (isLeft) return registry.freeName(name)
  registry.requireFreeName('', name)
  return name
}

/** Puts labs of students back to how they were handed out, by a job. 404, 409, 429. */
export const resetClass = (
  catalog: LabCatalog,
  className: string,
  names: readonly string[] | null | undefined,
  by: WorkFor,
): Promise<StartedJob> => onOwnLabs(catalog, 'class-reset', studentsOf(catalog, className, names), by)

/** Deletes the labs of a class by a job, after its links: when these stay, nothing is deleted. 404, 409, 429. */
export const deleteClass = (
  catalog: LabCatalog,
  className: string,
  by: WorkFor,
  revokeLinks: (students: readonly Student[]) => Promise<void>,
): Promise<StartedJob> => {
  const students = studentsOf(catalog, className)
  return onOwnLabs(catalog, 'class-delete', students, by, () => revokeLinks(students))
}

function onOwnLabs(
  catalog: LabCatalog,
  action: 'class-reset' | 'class-delete',
  students: readonly Student[],
  by: WorkFor,
  first?: () => Promise<void>,
): Promise<StartedJob> {
  const work: StudentLabWork = { action: action === 'class-reset' ? 'reset' : 'remove' }
  const parts = students.map((student) => newPart(student, [{ of: student.project_id, work }]))
  return runOnClass(catalog, action, (students[0] as Student).name, parts, by, first)
}

const newPart = ({ project_id, project }: Pick<Student, 'project_id' | 'project'>, works: Part['works']): Part => ({
  ...{
    project_id,
    name: project,
    works,
    state: works.length === 0 ? 'done' : 'waiting',
    reason: null,
    compute_id: null,
  },
})

/**
 * A job on the labs of a class: what fails for one student does not stop the others. It ends when all its labs are done with. `first`: is done
 * before them. 409 while another one runs, 429.
 */
async function runOnClass(
  catalog: LabCatalog,
  action: ClassAction,
  className: string,
  parts: readonly Part[],
  by: WorkFor,
  first: () => Promise<void> = async () => {},
): Promise<StartedJob> {
  const busy = catalog.jobs
    .list()
    .find((job) => job.status === 'running' && job.class !== undefined && nameKey(job.class) === nameKey(className))
  if (busy !== undefined)
    throw conflict(`The class ${className} is being changed by the job ${busy.job_id}: wait for it`)
  return catalog.jobs.run(undefined, action, {
    state: () => progressOfProjects(parts, { class: className }),
    async work({ signal, changed }) {
      const show = (part: Part, state: Part['state'], reason: string | null = null) => {
        Object.assign(part, { state, reason })
        changed()
      }
      await first()
      const defects: unknown[] = []
      await mapLimit(
        parts.filter(({ state }) => state === 'waiting'),
        async (part) => {
          if (signal.aborted) return show(part, 'cancelled')
          show(part, 'working')
          try {
            for (const { of, work } of part.works) await catalog.workOnStudentLab(of, work, by)
            show(part, 'done')
          } catch (error) {
            show(part, 'failed', reasonOf(error))
            if (!(error instanceof ApiError)) defects.push(error)
          }
        },
        maxAtOnce,
      )
      if (defects.length > 0) throw defects[0]
    },
  })
}

/** 400 for a name that is given twice. */
function requireUnique(names: readonly string[]): readonly string[] {
  const seen = new Set<string>()
  for (const name of names) {
    if (seen.has(nameKey(name))) throw badRequest(`students: ${name} is there twice; give each student another name`)
    seen.add(nameKey(name))
  }
  return names
}
