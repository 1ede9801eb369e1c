import { ignore } from '../lib/async/ignore.ts'
import { mapLimit } from '../lib/async/map-limit.ts'
import { startTimer } from '../lib/async/pause.ts'
import { counted } from '../lib/text/counted.ts'
import type { Capabilities } from '../model/host.ts'
import type { ComputeAgents } from './computes/agents.ts'
import type { Jobs } from './jobs/jobs.ts'
import { Changes } from './lab/document.ts'
import type { Lab } from './lab/lab.ts'

/** Changes of `lastRunning` within this time are saved together, ms. */
const saveMs = 1000

/** What is read of the state of a node. */
export interface NodeRun {
  readonly node_id: string
  readonly status: string
  readonly status_reason?: string | null | undefined
}

/** Starts nodes of labs with `auto_start`, and remembers which ran: these are started after a reboot of their compute. */
export class AutoStart {
  readonly #jobs: Jobs
  readonly #warn: (message: string) => void
  /** Cancels the pending save of `lastRunning` of a lab. */
  readonly #unsaved = new Map<Lab, () => void>()

  constructor(jobs: Jobs, warn: (message: string) => void) {
    this.#jobs = jobs
    this.#warn = warn
  }

  /** Starts nodes by a job. `nodes`: their ids; undefined: all. */
  start(lab: Lab, nodes: string[] | undefined, agentFor: ComputeAgents): void {
    if (!lab.document.project.auto_start || (nodes ?? [...lab.document.nodes.keys()]).length === 0) return
    try {
      this.#jobs.start(lab, { action: 'start', ...(nodes && { nodes }) }, agentFor)
    } catch (error) {
      lab.emit({
        action: 'log.warning',
        event: { message: `The nodes of the project were not started: ${(error as Error).message}` },
      })
    }
  }

  /** Starts the nodes that ran on computes whose boot id has changed. */
  async startAfterReboot(lab: Lab, computes: readonly string[], agentFor: ComputeAgents): Promise<void> {
    if (!lab.document.project.auto_start) return
    const rebooted = new Set<string>()
    await mapLimit(computes, async (id) => {
      const note = async ({ boot_id }: Capabilities) => boot_id !== undefined && lab.recordBoot(id, boot_id)
      const isOther = await agentFor(id)
        .host.capabilities()
        .then(note)
        .catch(ignore('an absent compute is asked when it is back'))
      if (isOther === true) rebooted.add(id)
    })
    const ran = [...lab.document.nodes.values()].filter(
      ({ node_id, compute_id }) =>
        rebooted.has(compute_id) && lab.lastRunning.has(node_id) && lab.reported.get(node_id)?.status === 'stopped',
    )
    if (ran.length > 0)
      this.start(
        lab,
        ran.map(({ node_id }) => node_id),
        agentFor,
      )
  }

  /** Starts the nodes that an apply of a lab file had stopped when the service ended, and reports that there is more to do. */
  resumeApply(lab: Lab, agentFor: ComputeAgents): void {
    const { name, lastApplied } = lab.document.project
    if (lastApplied?.pendingApply === undefined) return
    const nodes = lastApplied.pendingApply.stopped.filter((id) => lab.reported.get(id)?.status === 'stopped')
    const what = `The service stopped while it applied the lab file of ${name}`
    const more = nodes.length === 0 ? '' : `; the ${counted(nodes.length, 'node')} that it had stopped will be started`
    const message = `${what}: apply the file again to finish${more}`
    this.#warn(message)
    lab.emit({ action: 'log.warning', event: { message } })
    if (nodes.length === 0) return
    const { pendingApply } = lastApplied
    const done = async () => {
      // When the service ends, its next start starts the nodes that are left.
      if (lab.closing.signal.aborted) return
      await lab.edit(({ project }) => {
        const isSame = project.lastApplied?.pendingApply?.job_id === pendingApply.job_id
        const changed = isSame
          ? { ...project, lastApplied: { ...lastApplied, pendingApply: { ...pendingApply, stopped: [] } } }
          : project
        return { changes: new Changes().project(changed), news: () => [], result: undefined }
      })
    }
    this.#jobs
      .start(lab, { action: 'start', nodes }, agentFor)
      .over.then(done, done)
      .catch(ignore('the job shows what failed'))
  }

  /** Updates `lastRunning`. A node that ended by itself, or with its host, stays in it. */
  trackRunning(lab: Lab, { node_id, status, status_reason }: NodeRun): void {
    const runs = status !== 'stopped'
    if (runs === lab.lastRunning.has(node_id) || (!runs && status_reason != null)) return
    if (runs) lab.lastRunning.add(node_id)
    else lab.lastRunning.delete(node_id)
    if (!lab.document.project.auto_start || this.#unsaved.has(lab)) return
    const cancel = startTimer(() => {
      this.#unsaved.delete(lab)
      lab.saveLastRunning().catch(ignore('the next change is saved with it'))
    }, saveMs)
    this.#unsaved.set(lab, cancel)
  }

  /** Drops the pending save of a lab that is closed. */
  closed(lab: Lab): void {
    this.#unsaved.get(lab)?.()
    this.#unsaved.delete(lab)
  }

  /** Saves what is not saved yet. */
  async end(): Promise<void> {
    for (const [lab, cancel] of this.#unsaved) {
      cancel()
      await lab.saveLastRunning().catch(ignore('the saved set is a second older'))
    }
  }
}
