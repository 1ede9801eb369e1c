import { effect, signal } from '@preact/signals'
import type { LabJob, Patchbay } from '../../../src/client/patchbay.ts'
import type { LabStore } from '../state/lab-store.ts'
import { notify } from '../state/notices.ts'
import { mayEdit } from '../state/session.ts'
import type { EditHistory } from './edit-history.ts'
import { failureText } from './job-text.ts'

export type LabNodeAction = 'start' | 'stop' | 'suspend' | 'resume' | 'reload'

/** An image that a node lacks. */
export interface LackedImage {
  readonly node_id: string
  readonly kind: string
  /** The name that the node has for it. */
  readonly image: string
  /** What follows once it is there. Absent: the node is started. */
  readonly save?: () => void
}

/** What a job on nodes of a lab needs of its editor. */
interface NodeJobsOptions {
  readonly client: Patchbay
  readonly store: LabStore
  readonly history: EditHistory
  readonly params: () => { project_id: string }
  readonly select: (ids: readonly string[]) => void
}

/** Starts, stops and suspends nodes by jobs, and says which of them failed. */
export class NodeJobs {
  /** Images that nodes lacked at a start, or that settings name, while they are uploaded. */
  readonly missing = signal<readonly LackedImage[]>([])
  readonly #options: NodeJobsOptions

  constructor(options: NodeJobsOptions) {
    this.#options = options
  }

  /** Starts, stops or suspends nodes; without ids all of them. Its job shows how far it is. */
  async act(action: LabNodeAction, ids?: readonly string[]): Promise<void> {
    await this.#begin(action, ids)
  }

  /** Stops nodes, then starts them again: as another emulator, which has the settings of now. */
  async restart(ids: readonly string[]): Promise<void> {
    const job = await this.#begin('stop', ids)
    if (job === undefined) return
    const { nodes } = await this.#ended(job)
    const stopped = ids.filter((id) => !nodes.some(({ node_id, state }) => node_id === id && state === 'failed'))
    await this.act('start', stopped)
  }

  async #begin(action: LabNodeAction, ids: readonly string[] | undefined): Promise<LabJob | undefined> {
    if (ids !== undefined && ids.length === 0) return
    const { client, history, params } = this.#options
    const job = await history.ask(() =>
      client.call('POST /v2/projects/{project_id}/jobs', {
        params: params(),
        body: { action, ...(ids !== undefined && { nodes: [...ids] }) },
      }),
    )
    if (job !== undefined) void this.#ended(job).then((now) => this.#tellFailures(now))
    return job
  }

  /** A job when it has ended. The feed may be later than the answer, or earlier. */
  #ended(job: LabJob): Promise<LabJob> {
    const { jobs } = this.#options.store
    return new Promise((resolve) => {
      let isOver = false
      const end = effect(() => {
        const now = jobs.get(job.job_id) ?? job
        if (now.status === 'running' || isOver) return
        isOver = true
        // Not within the effect, which has not begun to be one yet.
        queueMicrotask(() => end())
        resolve(now)
      })
    })
  }

  /** Says which nodes of a job failed, and why. */
  #tellFailures(job: LabJob): void {
    const text = failureText(job)
    if (text === undefined) return
    const failed = job.nodes.flatMap(({ node_id, state }) => (state === 'failed' ? node_id : []))
    const missing = mayEdit() ? this.#missingIn(job) : []
    const upload = () => {
      this.missing.value = missing
    }
    const details = { verb: 'Details', run: () => this.#options.select(failed) }
    if (missing.length > 0) notify('error', text, { verb: 'Upload', run: upload }, details)
    else notify('error', text, details)
  }

  /** The images that the nodes of a job lack. */
  #missingIn({ nodes }: LabJob): LackedImage[] {
    return nodes.flatMap(({ node_id, image }) => {
      const kind = this.#options.store.nodes.get(node_id)?.node_type
      return image === undefined || kind === undefined ? [] : [{ node_id, kind, image }]
    })
  }
}
