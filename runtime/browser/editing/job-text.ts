import type { LabJob } from '../../../src/client/patchbay.ts'

/** What the nodes of a job did, and what one that failed did not do. */
const verbs: Partial<Readonly<Record<LabJob['action'], readonly [done: string, not: string]>>> = {
  start: ['started', 'did not start'],
  stop: ['stopped', 'did not stop'],
  suspend: ['suspended', 'was not suspended'],
  resume: ['resumed', 'was not resumed'],
  reload: ['restarted', 'did not restart'],
}

/** What a job does, and what it counts. */
const doings: Readonly<Record<LabJob['action'], readonly [doing: string, counts: string]>> = {
  start: ['Starting', 'nodes'],
  stop: ['Stopping', 'nodes'],
  suspend: ['Suspending', 'nodes'],
  resume: ['Resuming', 'nodes'],
  reload: ['Restarting', 'nodes'],
  apply: ['Applying a lab file', 'steps'],
  check: ['Running the checks', 'checks'],
  drain: ['Draining a compute', 'labs'],
  'class-create': ['Making the labs of a class', 'labs'],
  'class-reset': ['Resetting the labs of a class', 'labs'],
  'class-delete': ['Deleting a class', 'labs'],
}

/** How far a job is, such as `Starting: 3 of 12 nodes`. */
export function progressText({
  action,
  done,
  total,
  tasks,
}: Pick<LabJob, 'action' | 'done' | 'total' | 'tasks'>): string {
  const [doing, counts] = tasks === undefined ? (doings[action] ?? [action, '']) : ['Checking the tasks', 'tasks']
  return `${doing}: ${done} of ${total} ${counts}`
}

/** Why nodes of a job failed, for a message; undefined for a job without such nodes. */
export function failureText({ action, done, nodes, total }: LabJob): string | undefined {
  const [past, not] = verbs[action] ?? ['done', 'failed']
  const failed = nodes.filter(({ state }) => state === 'failed')
  const [first] = failed
  if (first === undefined) return undefined
  const reason = first.reason === null ? '' : `: ${plainReason(withoutName(first.reason, first.name))}`
  if (total === 1) return `${first.name} ${not}${reason}`
  const others = total - done - failed.length
  const counts = [`${done} ${past}`, `${failed.length} failed`, ...(others > 0 ? [`${others} not tried`] : [])]
  return `${counts.join(', ')}. ${first.name} ${not}${reason}`
}

/** The reason of a node that was never made begins with its name. */
const withoutName = (reason: string, name: string): string =>
  reason.startsWith(`${name}: `) ? reason.slice(name.length + 2) : reason

/** A reason without the member of the API at its beginning, such as `hda_disk_image: `. */
export const plainReason = (reason: string): string => reason.replace(/^[a-z]+\d?(?:_[a-z0-9]+)+(?:\[\d+\])*: /, '')
