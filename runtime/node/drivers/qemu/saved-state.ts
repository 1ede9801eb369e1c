import { randomUUID } from 'node:crypto'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { diskSlots } from '../../../../src/model/kinds/machine-emulator.ts'
import { diskId } from './drives.ts'
import type { Qmp } from './qmp.ts'

/** Tag of the snapshot with the saved state. */
export const savedStateTag = 'patchbay'
export const staleStateHint =
  'its saved state may no longer fit its settings: undo their changes, or set on_close to power_off to start without it'

/** Timeouts of a save and of other commands, ms. */
const saveMs = 300_000
const askMs = 10_000

interface Block {
  readonly device: string
  readonly inserted?: { readonly 'node-name': string; readonly ro: boolean; readonly drv: string }
}

/** Saves the state of a paused machine in its disks; 409 when the disks cannot hold it. */
export async function saveState(qmp: Qmp): Promise<void> {
  const devices = await writable(qmp)
  const [vmstate] = devices
  await job(qmp, 'snapshot-save', { tag: savedStateTag, devices, vmstate }, 'savevm')
}

/** Removes the saved state, if any, from the disks. */
export async function dropState(qmp: Qmp): Promise<void> {
  await job(qmp, 'snapshot-delete', { tag: savedStateTag, devices: await writable(qmp) }, 'delvm')
}

/** The node names of all writable disks; a state must include all of them. */
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
  if (disks.length === 0) throw conflict('The state cannot be saved: the machine has no disk to save it on')
  return disks.map((disk) => disk['node-name'])
}

type JobInfo = { readonly id: string; readonly status: string; readonly error?: string }

/** Runs a job to its end. QEMU before 6.0 has a monitor command instead, which answers with an error text or nothing. */
async function job(qmp: Qmp, command: string, args: Record<string, unknown>, older: string): Promise<void> {
  if (qmp.version.major < 6) {
    const line = `${older} ${savedStateTag}`
    const problem = await qmp.execute<string>('human-monitor-command', { 'command-line': line }, saveMs)
    if (problem.trim() !== '') throw conflict(`The state of the machine: ${problem.trim()}`)
    return
  }
  // A unique id, because a job of a killed service may still exist.
  const jobId = `pb-${randomUUID()}`
  const concluded = qmp.nextEvent(
    ({ event, data: { id, status } }) => event === 'JOB_STATUS_CHANGE' && id === jobId && status === 'concluded',
    saveMs,
  )
  concluded.catch(ignore('it is awaited below, unless the command fails'))
  await qmp.execute(command, { 'job-id': jobId, ...args }, askMs)
  await concluded
  const jobs = await qmp.execute<JobInfo[]>('query-jobs', {}, askMs)
  await qmp.execute('job-dismiss', { id: jobId }, askMs)
  const error = jobs.find(({ id }) => id === jobId)?.error
  if (error !== undefined) throw conflict(`The state of the machine: ${error}`)
}
