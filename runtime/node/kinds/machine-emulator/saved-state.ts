import { randomUUID } from 'node:crypto'
import { ignore } from '../../../../src/async/ignore.ts'
import { conflict } from '../../../../src/errors/api-error.ts'
import { diskSlots } from '../../../../src/kinds/machine-emulator.ts'
import { diskId } from './drives.ts'
import type { Qmp } from './qmp.ts'

/** Tag of the snapshot that holds the state of a machine while it is stopped. */
export const savedStateTag = 'patchbay'
/** It is never dropped without being asked for. */
export const staleStateHint =
  'its saved state may not fit its settings any more: undo their changes, or set on_close to power_off to begin without it'

/** Memory goes to the disk with this bound, ms. */
const saveMs = 300_000
const askMs = 10_000

interface Block {
  readonly device: string
  readonly inserted?: { readonly 'node-name': string; readonly ro: boolean; readonly drv: string }
}

/** Writes the state of a paused machine into its disks; 409 with the reason when they cannot hold it. */
export async function saveState(qmp: Qmp): Promise<void> {
  const devices = await writable(qmp)
  const [vmstate] = devices
  await job(qmp, 'snapshot-save', { tag: savedStateTag, devices, vmstate }, 'savevm')
}

/** Removes the state from the disks of a machine; one that is not there is fine. */
export async function dropState(qmp: Qmp): Promise<void> {
  await job(qmp, 'snapshot-delete', { tag: savedStateTag, devices: await writable(qmp) }, 'delvm')
}

/** The disks that take part, by the names of their nodes. All that can be written must, or they would not fit together. */
async function writable(qmp: Qmp): Promise<string[]> {
  const blocks = await qmp.execute<Block[]>('query-block', {}, askMs)
  const disks = blocks.flatMap(({ device, inserted }) =>
    inserted === undefined || inserted.ro ? [] : [{ device, ...inserted }],
  )
  const odd = disks.find(({ drv }) => drv !== 'qcow2')
  if (odd !== undefined) {
    const slot = diskSlots.find((it) => diskId(it) === odd.device) ?? odd.device
    throw conflict(`The state cannot be saved: ${slot} is a ${odd.drv} image, only qcow2 can hold a state`)
  }
  if (disks.length === 0) throw conflict('The state cannot be saved: the machine has no disk that could hold it')
  return disks.map((disk) => disk['node-name'])
}

interface JobInfo {
  readonly id: string
  readonly status: string
  readonly error?: string
}

/** Runs a job to its end. Versions before 6.0 have no such jobs; what they have answers with a complaint, or nothing. */
async function job(qmp: Qmp, command: string, args: Record<string, unknown>, older: string): Promise<void> {
  if (qmp.version.major < 6) {
    const line = `${older} ${savedStateTag}`
    const complaint = await qmp.execute<string>('human-monitor-command', { 'command-line': line }, saveMs)
    if (complaint.trim() !== '') throw conflict(`The state of the machine: ${complaint.trim()}`)
    return
  }
  // One of a service that was killed may still be there.
  const jobId = `pb-${randomUUID()}`
  const concluded = qmp.nextEvent(
    (event) =>
      event.event === 'OTHER' &&
      event.name === 'JOB_STATUS_CHANGE' &&
      event.data.id === jobId &&
      event.data.status === 'concluded',
    saveMs,
  )
  concluded.catch(ignore('it is awaited below, unless the command fails first'))
  await qmp.execute(command, { 'job-id': jobId, ...args }, askMs)
  await concluded
  const jobs = await qmp.execute<JobInfo[]>('query-jobs', {}, askMs)
  await qmp.execute('job-dismiss', { id: jobId }, askMs)
  const error = jobs.find(({ id }) => id === jobId)?.error
  if (error !== undefined) throw conflict(`The state of the machine: ${error}`)
}
