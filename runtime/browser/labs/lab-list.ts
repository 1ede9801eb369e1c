import { signal } from '@preact/signals'
import { ignore } from '../../../src/async/ignore.ts'
import { startTimer } from '../../../src/async/pause.ts'
import type { FeedLine, LabProject, LabStats, Patchbay } from '../../../src/client/patchbay.ts'
import { saveFile } from '../parts/downloads.ts'
import { followFeed } from '../state/follow-feed.ts'
import { Table } from '../state/table.ts'

/** Delay between the first event of a node and the count of its lab, ms: the events of a start of many nodes come together. */
const countMs = 1000

/** All labs of the service, kept up to date by its feed. */
export class LabList {
  readonly labs = new Table<LabProject>()
  readonly counts = new Table<LabStats>()
  readonly isLoaded = signal(false)
  readonly #client: Patchbay
  /** Ids of labs that are counted again soon. */
  readonly #due = new Set<string>()

  constructor(client: Patchbay) {
    this.#client = client
  }

  /** Follows the list until the signal aborts. Never rejects. */
  follow(signal: AbortSignal): Promise<void> {
    return followFeed(this.#client, { signal, read: () => this.#read(), apply: (line) => this.#apply(line) })
  }

  async #read(): Promise<void> {
    const labs = await this.#client.call('GET /v2/projects')
    this.labs.reset(labs.map((it) => [it.project_id, it]))
    this.isLoaded.value = true
  }

  #apply({ action, event }: FeedLine): void {
    const [resource, change] = action.split('.')
    if (resource === 'node') return this.#countLater((event as { project_id: string }).project_id)
    const lab = event as LabProject
    // Projects of computes have events of the same name, and no settings of a map.
    if (resource !== 'project' || lab.revision === undefined) return
    if (change === 'deleted') this.labs.delete(lab.project_id)
    else this.labs.put(lab.project_id, lab)
  }

  #countLater(id: string): void {
    if (this.#due.has(id) || this.labs.get(id) === undefined) return
    this.#due.add(id)
    startTimer(() => {
      this.#due.delete(id)
      const lab = this.labs.get(id)
      if (lab !== undefined) void this.count(lab)
    }, countMs)
  }

  /** Counts the nodes and links of a lab, and those that run. */
  async count({ project_id }: LabProject): Promise<void> {
    const stats = await this.#client
      .call('GET /v2/projects/{project_id}/stats', { params: { project_id } })
      .catch(ignore('the lab is shown without counts'))
    if (stats) this.counts.put(project_id, stats)
  }

  create(name: string): Promise<LabProject> {
    return this.#client.call('POST /v2/projects', { body: { name } })
  }

  async rename({ project_id }: LabProject, name: string): Promise<void> {
    this.#put(await this.#client.call('PUT /v2/projects/{project_id}', { params: { project_id }, body: { name } }))
  }

  async duplicate({ project_id }: LabProject, name: string): Promise<void> {
    this.#put(
      await this.#client.call('POST /v2/projects/{project_id}/duplicate', { params: { project_id }, body: { name } }),
    )
  }

  async remove({ project_id }: LabProject): Promise<void> {
    await this.#client.call('DELETE /v2/projects/{project_id}', { params: { project_id } })
    this.labs.delete(project_id)
  }

  /** Closes a lab: its nodes are stopped. */
  async shut({ project_id }: LabProject): Promise<void> {
    await this.#client.call('POST /v2/projects/{project_id}/close', { params: { project_id } })
  }

  /** Saves the archive of a lab as a file. */
  async export({ project_id, name }: LabProject): Promise<void> {
    const stream = await this.#client.stream('GET /v2/projects/{project_id}/export', { params: { project_id } })
    saveFile(`${name}.gns3project`, await new Response(stream).blob())
  }

  /** The same of a lab that runs. */
  async stopAndExport(lab: LabProject): Promise<void> {
    await this.#client.call('POST /v2/projects/{project_id}/nodes/stop', { params: { project_id: lab.project_id } })
    await this.export(lab)
  }

  #put(lab: LabProject): void {
    this.labs.put(lab.project_id, lab)
  }
}
