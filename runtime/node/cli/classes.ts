import { limitsText } from '../../../src/client/limits-text.ts'
import type { Class, ClassLink, LabJob } from '../../../src/client/patchbay.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { nameKey } from '../../../src/model/lab/names.ts'
import { studentNamesIn } from '../../../src/model/lab/student-names.ts'
import { type CommandContext, clientOf } from './client.ts'
import type { CommandInput, serviceFlags } from './command.ts'
import type { classCreating, classLinking, confirming } from './command-flags.ts'
import { requireYes } from './confirm.ts'
import { secondsOf } from './durations.ts'
import { CommandError, exits, notFound, wrongArguments } from './exits.ts'
import { readText } from './lab-file.ts'
import type { CommandOutcome } from './outcome.ts'
import { progressOf } from './progress.ts'
import { jobEnd } from './run-nodes.ts'
import { labOf } from './targets.ts'
import { timeText } from './times.ts'
import { limitsOf } from './tokens.ts'

/** `patchbay classes ls [CLASS]`: the classes, or the students of one. */
export async function classesLs({
  args: [word],
  flags,
  signal,
}: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  if (word !== undefined) {
    const found = await classNamed(word, context)
    return {
      json: { class: found },
      async text() {
        const { tableOf } = await import('./table.ts')
        const rows = found.students.map(({ student, project, token }) => [
          ...[student, project, token === null ? 'none' : rightsOf(token)],
          token === null ? '' : token.expires_at === null ? 'never' : timeText(token.expires_at),
        ])
        return tableOf(['STUDENT', 'LAB', 'LINK', 'ENDS'], rows)
      },
    }
  }
  const classes = await context.client.call('GET /v2/classes', { signal })
  return {
    json: { classes },
    async text() {
      if (classes.length === 0) return 'No classes; "patchbay classes create CLASS --lab LAB STUDENT..." makes one'
      const { tableOf } = await import('./table.ts')
      const rows = classes.map(({ name, students }) => [
        ...[name, students.length, students.filter(({ token }) => token !== null).length],
      ])
      return tableOf(['CLASS', 'STUDENTS', 'LINKS'], rows)
    },
  }
}

const rightsOf = ({ role, limits = {} }: NonNullable<Class['students'][number]['token']>): string => {
  const text = limitsText(limits)
  return text === '' ? role : `${role}, at most ${text}`
}

/** `patchbay classes create CLASS --lab LAB STUDENT...`: a lab and a link for each student. */
export async function classesCreate({
  args: [name = '', ...words],
  flags,
  signal,
}: CommandInput<typeof classCreating>): Promise<CommandOutcome> {
  const links = linkInput(flags)
  const students = [...words, ...(flags.students === undefined ? [] : studentNamesIn(await readText(flags.students)))]
  if (students.length === 0)
    throw wrongArguments('no students', 'name them, or give a file with a name a line: --students names.txt')
  if (flags.lab === undefined)
    throw wrongArguments('--lab is missing', 'name the lab of which each student gets a copy')
  const context = { client: await clientOf(flags), signal }
  const lab = await labOf(flags.lab, context)
  const body = { name, project_id: lab.project_id, students }
  const job = await classJob(
    `Making the labs of ${name}`,
    await context.client.call('POST /v2/classes', { body, signal }),
    {
      ...context,
      flags,
      again: 'the same command goes on',
    },
  )
  if (job.status !== 'done') return jobOutcome(job, 'made')
  const { name: className, students: all } = await classNamed(name, context)
  const given = new Set(students.map((student) => nameKey(student.normalize('NFC'))))
  // Who has a link keeps it.
  const without = all
    .filter(({ student, token }) => token === null && given.has(nameKey(student)))
    .map(({ student }) => student)
  if (without.length === 0)
    return {
      json: { class: className, links: [] },
      text: () => 'All students have links; "patchbay classes links" makes new ones',
    }
  return linksOutcome(className, { ...links, students: without }, context)
}

/** `patchbay classes links CLASS [STUDENT...]`: new links, in place of those that students have. */
export async function classesLinks({
  args: [word = '', ...students],
  flags,
  signal,
}: CommandInput<typeof classLinking>): Promise<CommandOutcome> {
  const links = linkInput(flags)
  const context = { client: await clientOf(flags), signal }
  const { name } = await classNamed(word, context)
  return linksOutcome(name, { ...links, ...(students.length > 0 && { students }) }, context)
}

/** `patchbay classes reset CLASS [STUDENT...]`: labs as they were handed out. */
export async function classesReset({
  args: [word = '', ...students],
  flags,
  signal,
}: CommandInput<typeof confirming>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  const { name, students: all } = await classNamed(word, context)
  const whose =
    students.length === 0 ? `all ${counted(all.length, 'lab')} of ${name}` : `the labs of ${students.join(', ')}`
  await requireYes(`Reset ${whose}? What was done in them since they were handed out is lost.`, flags, 'reset')
  const body = students.length === 0 ? {} : { students }
  const begun = await context.client.call('POST /v2/classes/{class}/reset', { params: { class: name }, body, signal })
  const job = await classJob(`Resetting ${name}`, begun, { ...context, flags, again: 'the same command goes on' })
  return jobOutcome(job, 'reset')
}

/** `patchbay classes rm CLASS`: deletes its labs and links. */
export async function classesRm({
  args: [word = ''],
  flags,
  signal,
}: CommandInput<typeof confirming>): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  const { name, students } = await classNamed(word, context)
  await requireYes(`Delete ${name} with ${counted(students.length, 'lab')} and their links?`, flags, 'deleted')
  const begun = await context.client.call('DELETE /v2/classes/{class}', { params: { class: name }, signal })
  const job = await classJob(`Deleting ${name}`, begun, { ...context, flags, again: 'the same command goes on' })
  return jobOutcome(job, 'deleted')
}

/** A class by its name; case does not count. CommandError 1. */
async function classNamed(word: string, { client, signal }: CommandContext): Promise<Class> {
  const all = await client.call('GET /v2/classes', { signal })
  const found = all.find(({ name }) => name.toLowerCase() === word.toLowerCase())
  if (found !== undefined) return found
  const names = all.map(({ name }) => name)
  throw notFound(`there is no class ${JSON.stringify(word)}`, word, names, '"patchbay classes ls" lists them')
}

/** What the links are to be, as flags say. CommandError 64. */
function linkInput(flags: CommandInput<typeof classLinking>['flags']) {
  const limits = limitsOf(flags)
  const seconds = flags.expires === undefined ? undefined : secondsOf('--expires', flags.expires, 0)
  return {
    ...(flags.role !== undefined && { role: flags.role === 'read' ? ('read' as const) : ('operate' as const) }),
    ...(limits !== undefined && { limits }),
    ...(seconds !== undefined && { expires_in_s: Math.max(1, Math.round(seconds)) }),
  }
}

interface Watching extends CommandContext {
  readonly flags: { readonly json: boolean }
  /** What to do after an interruption. */
  readonly again: string
}

/** Waits for a job on a class. */
async function classJob(title: string, { job_id }: LabJob, { flags, again, ...context }: Watching): Promise<LabJob> {
  const progress = await progressOf(title, flags)
  return jobEnd(job_id, { ...context, progress }).catch((error) => {
    if (!context.signal.aborted) throw error
    throw new CommandError(exits.interrupted, [{ message: 'interrupted; labs that are done stay so', hint: again }])
  })
}

/** How a job on a class has ended: with the labs that failed. */
function jobOutcome(job: LabJob, done: string): CommandOutcome {
  const failed = (job.projects ?? []).filter(({ state }) => state !== 'done')
  return {
    exit: job.status === 'done' ? exits.done : exits.failed,
    json: { job },
    async text() {
      const { shown, tableOf } = await import('./table.ts')
      const sum = shown(`${job.done} of ${counted(job.total, 'lab')} ${done}`)
      if (failed.length === 0) return sum
      const rows = failed.map(({ name, state, reason }) => [name, state, reason ?? ''])
      return [tableOf(['LAB', 'STATE', 'REASON'], rows), '', sum].join('\n')
    },
  }
}

/** New links; standard output has the table alone, for a file or a printer. */
async function linksOutcome(
  name: string,
  body: ReturnType<typeof linkInput> & { readonly students?: string[] },
  { client, signal }: CommandContext,
): Promise<CommandOutcome> {
  const params = { class: name }
  const made = await client.call('POST /v2/classes/{class}/links', { params, body, signal })
  const links = made.map(({ path, ...link }: ClassLink) => ({ ...link, link: new URL(path, client.server).href }))
  return {
    json: { class: name, links },
    async text() {
      const { shown, tableOf } = await import('./table.ts')
      process.stderr.write(`${shown(`${counted(links.length, 'link')} for ${name}. They cannot be shown again:`)}\n`)
      return tableOf(
        ['STUDENT', 'LINK'],
        links.map(({ student, link }) => [student, link]),
      )
    },
  }
}
