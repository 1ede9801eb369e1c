import { effect, signal } from '@preact/signals'
import type { LabEdits, Patchbay } from '../../../src/client/patchbay.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import type { LabStore } from '../state/lab-store.ts'
import { notifyError } from '../state/notices.ts'
import { mayEdit } from '../state/session.ts'

/** Time between a change and the question what undo takes now, ms. */
const editsMs = 500

/** Counts a request of an edit when it succeeds. */
type Sent = <T>(request: Promise<T>) => Promise<T>

/** The edits of this page: each is one or several requests, and one undo reverts all of them. */
export class EditHistory {
  /** What undo and redo take; undefined: not known yet. */
  readonly edits = signal<LabEdits | undefined>(undefined)
  /** Number of requests without an answer. */
  readonly pending = signal(0)
  /** How many requests each of the last edits took, and each of those that were undone. */
  readonly #counts = { undo: [] as number[], redo: [] as number[] }
  #reading: ReturnType<typeof setTimeout> | undefined
  readonly #client: Patchbay
  readonly #params: () => { project_id: string }

  constructor(client: Patchbay, params: () => { project_id: string }) {
    this.#client = client
    this.#params = params
  }

  /** Number of the edits that can be undone here: another one after the next edit. */
  get length(): number {
    return this.#counts.undo.length
  }

  /** Sends an edit: `sent` counts the requests that succeed. `onFault` shows why it was refused. */
  async edit<T>(send: (sent: Sent) => Promise<T>, onFault = notifyError): Promise<T | undefined> {
    let count = 0
    const sent: Sent = async (request) => {
      const answer = await request
      count += 1
      return answer
    }
    this.edits.value = undefined
    // When one of several requests fails, others may have succeeded.
    const result = await this.ask(() => send(sent), onFault)
    if (count > 0) {
      this.#counts.undo.push(count)
      this.#counts.redo.length = 0
    }
    this.#readSoon()
    return result
  }

  /** Sends requests that no undo reverts. */
  async ask<T>(send: () => Promise<T>, onFault = notifyError): Promise<T | undefined> {
    this.pending.value += 1
    try {
      return await send()
    } catch (error) {
      onFault(error)
      return undefined
    } finally {
      this.pending.value -= 1
    }
  }

  async back(way: 'undo' | 'redo'): Promise<void> {
    const count = this.#counts[way].pop() ?? 1
    this.edits.value = undefined
    const isDone = await this.ask(async () => {
      for (let left = count; left > 0; left--)
        await this.#client.call(`POST /v2/projects/{project_id}/${way}`, { params: this.#params() })
      return true
    })
    if (isDone === true) this.#counts[way === 'undo' ? 'redo' : 'undo'].push(count)
    this.#readSoon()
  }

  /** Follows what undo and redo take, until the result is called. */
  follow({ project, changes }: LabStore): () => void {
    const end = effect(() => {
      if (project.value !== undefined && changes.value > 0) this.#readSoon()
    })
    return () => {
      end()
      clearTimeout(this.#reading)
    }
  }

  /** Reads what undo and redo take, when the edits of a moment are over. */
  #readSoon(): void {
    this.#reading ??= setTimeout(() => {
      this.#reading = undefined
      if (!mayEdit()) return
      const count = this.pending.value
      this.#client
        .call('GET /v2/projects/{project_id}/edits', { params: this.#params() })
        .then((edits) => {
          // An edit that began meanwhile reads them again.
          if (count === 0 && this.pending.value === 0) this.edits.value = edits
        })
        .catch(ignore('the button stays as it is, and a lost connection is shown'))
    }, editsMs)
  }
}
