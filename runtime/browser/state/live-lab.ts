import { signal } from '@preact/signals'
import type { Patchbay } from '../../../src/client/patchbay.ts'
import { PatchbayError } from '../../../src/client/patchbay.ts'
import { pause } from '../../../src/lib/async/pause.ts'
import { type LabReading, LabStore } from './lab-store.ts'
import { isOutage } from './outage.ts'

/** Time between two tries to read a lab, ms. */
const retryMs = 1000

/** `gone`: there is no such lab, or it cannot be opened; the message says why. */
export type LabConnection =
  | { readonly state: 'connecting' | 'live' | 'lost' }
  | { readonly state: 'gone'; readonly message: string }

/** Keeps the store of one lab up to date by its feed, over lost connections. */
export class LiveLab {
  readonly store: LabStore
  readonly connection = signal<LabConnection>({ state: 'connecting' })
  readonly #client: Patchbay
  readonly #project: string

  /** `project` is its id or its name. */
  constructor(client: Patchbay, project: string, notice: ConstructorParameters<typeof LabStore>[0]) {
    this.#client = client
    this.#project = project
    this.store = new LabStore(notice)
  }

  /** Follows the lab until the signal aborts, or the lab is gone. Never rejects. */
  async follow(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      try {
        await this.#open()
        await this.#read(over)
        // The feed of a lab that was closed ends.
        if (this.store.end.value !== undefined) return
      } catch (error) {
        if (over.aborted) return
        if (error instanceof PatchbayError && !isOutage(error)) {
          const message = error.status === 404 ? `No such lab: ${this.#project}.` : error.message
          this.connection.value = { state: 'gone', message }
          return
        }
        this.connection.value = { state: 'lost' }
      }
      await pause(retryMs, over)
    }
  }

  /** Opens the lab when it is closed. */
  async #open(): Promise<void> {
    const params = { project_id: this.#project }
    const { status } = await this.#client.call('GET /v2/projects/{project_id}', { params })
    if (status === 'closed') await this.#client.call('POST /v2/projects/{project_id}/open', { params })
  }

  async #read(over: AbortSignal): Promise<void> {
    let isRead = false
    const onLost = (error: PatchbayError | undefined) => {
      this.connection.value = { state: error === undefined ? 'live' : 'lost' }
    }
    for await (const line of this.#client.feed({ project: this.#project, signal: over, onLost })) {
      // The first line says that the feed has begun: events from now on wait in it while the snapshot is read.
      if (!isRead || line.action === 'resync' || line.action === 'snapshot.restored') {
        this.store.reset(await this.#snapshot())
        isRead = true
      }
      if (this.connection.value.state !== 'live') this.connection.value = { state: 'live' }
      this.store.apply(line)
      if (this.store.end.value !== undefined) return
    }
  }

  async #snapshot(): Promise<LabReading> {
    const params = { project_id: this.#project }
    const client = this.#client
    const [project, nodes, links, drawings, jobs, snapshots] = await Promise.all([
      client.call('GET /v2/projects/{project_id}', { params }),
      client.call('GET /v2/projects/{project_id}/nodes', { params }),
      client.call('GET /v2/projects/{project_id}/links', { params }),
      client.call('GET /v2/projects/{project_id}/drawings', { params }),
      client.call('GET /v2/jobs'),
      client.call('GET /v2/projects/{project_id}/snapshots', { params }),
    ])
    return { project, nodes, links, drawings, jobs, snapshots }
  }
}
