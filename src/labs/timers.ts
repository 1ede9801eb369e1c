import { ignore } from '../lib/async/ignore.ts'
import { badRequest } from '../lib/errors/api-error.ts'
import type { LabJobCreate } from '../model/lab/job.ts'
import type { LabAccess } from './access.ts'
import type { LabArchives } from './archives/lab-archives.ts'
import type { ComputeAgents } from './computes/agents.ts'
import type { LabDocuments } from './documents.ts'
import type { Jobs, StartedJob } from './jobs/jobs.ts'
import type { Conventions } from './lab/conventions.ts'
import { Changes, type ProjectRecord } from './lab/document.ts'
import { withoutNulls } from './lab/fields.ts'
import type { Lab } from './lab/lab.ts'
import { LabTimes } from './lab-times.ts'
import type { HeadWatcher, LabRegistry } from './registry.ts'

/** Time after which a lab is stopped, s, and whether it is deleted then. */
interface Ttl {
  readonly ttl_s: number | null | undefined
  readonly ttl_deletes: boolean | null | undefined
}

interface TimersOptions {
  readonly registry: LabRegistry
  readonly documents: LabDocuments
  readonly access: LabAccess
  readonly jobs: Jobs
  readonly archives: LabArchives
  readonly remover: LabRemover
  /** On behalf of the service itself. */
  readonly agentFor: ComputeAgents
  /** Takes note of the next time at which `runDue` must be called, ms since 1970, for a process that sleeps until it is asked. */
  readonly wakeAt?: ((time: number) => void) | undefined
  readonly warn: (message: string) => void
}

/** Deletes a lab whose time is over. */
interface LabRemover {
  remove(idOrName: string, agentFor: ComputeAgents): Promise<void>
}

/** Stops, deletes and backs up labs at the times that their records have. */
export class LabTimers implements HeadWatcher {
  readonly #options: TimersOptions
  readonly #wakeAt: (time: number) => void
  readonly #stopTimes: LabTimes
  /** Times of the next attempts to archive closed labs. */
  readonly #archiveTimes: LabTimes

  constructor(options: TimersOptions) {
    const { archives, wakeAt = () => {}, warn } = options
    this.#options = options
    this.#wakeAt = wakeAt
    this.#stopTimes = new LabTimes({
      run: (id, stopAt) => this.#stopNow(id, stopAt),
      failed: (id, stopAt, { message }) => warn(`The project ${id} was not stopped at ${stopAt}: ${message}`),
    })
    this.#archiveTimes = new LabTimes({
      run: (id, time) => archives.archive(id, time),
      failed: (id, _, error) => archives.recordFailure(id, error),
    })
    options.registry.watch(this)
  }

  headChanged(id: string, head: ProjectRecord | undefined): void {
    const againAt = head && this.#options.archives.nextAttemptAt(head)
    this.#stopTimes.note(id, head?.stop_at)
    this.#archiveTimes.note(id, againAt)
    for (const time of [head?.stop_at, againAt]) if (time !== undefined) this.#wakeAt(Date.parse(time))
  }

  /** Stops and backs up the labs whose time has come, in a process that `wakeAt` has woken. */
  async runDue(): Promise<void> {
    await this.#options.access.reopened
    for (const times of [this.#stopTimes, this.#archiveTimes]) {
      await times.due()
      if (times.next !== undefined) this.#wakeAt(times.next)
    }
  }

  end(): void {
    for (const times of [this.#stopTimes, this.#archiveTimes]) times.end()
  }

  /**
   * Stops the nodes of a lab after a time in seconds, or deletes the lab, also when the service ends and is started meanwhile; 0: neither.
   * Without a time nothing is changed. 400.
   */
  async stopAfter(lab: Lab, ttl: Ttl): Promise<void> {
    const deletes = deletesAfter(lab, ttl)
    const { ttl_s } = ttl
    if (ttl_s == null) return
    await this.#setStopTime(lab, ttl_s === 0 ? undefined : new Date(Date.now() + ttl_s * 1000).toISOString(), deletes)
  }

  /** Starts a job on nodes. One that stops all nodes ends the jobs that start nodes, and removes `stop_at`. 400, 404, 429. */
  act(lab: Lab, input: LabJobCreate, agentFor: ComputeAgents, conventions?: Conventions): StartedJob {
    const { jobs } = this.#options
    const job = jobs.start(lab, input, agentFor, conventions)
    if (input.action !== 'stop' || input.nodes !== undefined) return job
    jobs.cancelAllOf(lab.id, 'All nodes were stopped', { only: 'start' })
    const { stop_at } = lab.document.project
    if (stop_at === undefined) return job
    const forget = async () => {
      // A client may have given another one meanwhile.
      if (lab.document.project.stop_at === stop_at) await this.#setStopTime(lab, undefined)
    }
    const over = job.over.then(forget)
    over.catch(ignore('the job shows what failed, and the lab is stopped at its time'))
    return { ...job, over }
  }

  async #setStopTime(lab: Lab, stop_at: string | undefined, deletes = false): Promise<void> {
    if (lab.document.project.stop_at === stop_at) return
    await lab.edit(({ project: { stop_at: _, ttl_deletes: __, ...project } }) => ({
      changes: new Changes().project({
        ...project,
        ...withoutNulls({ stop_at }),
        ...(stop_at !== undefined && deletes && { ttl_deletes: true }),
      }),
      news: () => [],
      result: undefined,
    }))
    await this.#options.registry.put(lab.id, lab.document.project)
    this.#options.documents.publish(lab, 'project.updated')
  }

  /** Stops or deletes a lab that is due. */
  async #stopNow(id: string, stopAt: string): Promise<void> {
    const { access, registry, documents, remover, agentFor } = this.#options
    await access.reopened
    const head = registry.get(id)
    if (head?.stop_at !== stopAt) return
    const lab = documents.get(id)
    if (lab === undefined && head.is_open) throw new Error('it could not be opened')
    if (head.ttl_deletes) await remover.remove(id, agentFor)
    else if (lab !== undefined) await this.act(lab, { action: 'stop' }, agentFor).over
    else await this.#setStopTime(await access.find(id), undefined)
  }
}

/** Whether a lab is deleted after its time, or only stopped. 400 when that is changed without a time. */
export function deletesAfter({ document: { project } }: Lab, { ttl_s, ttl_deletes }: Ttl): boolean {
  const now = project.ttl_deletes === true
  // A client may send back what it was shown.
  if (ttl_s == null && (ttl_deletes ?? now) !== now)
    throw badRequest('ttl_deletes: needs ttl_s, the time after which the project is deleted')
  return ttl_deletes ?? now
}
