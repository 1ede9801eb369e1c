import { signal } from '@preact/signals'
import type { Compute, LabProject, Patchbay, ServiceLine } from '../../../src/client/patchbay.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { startTimer } from '../../../src/lib/async/pause.ts'
import { saveFile } from '../parts/downloads.ts'
import { followFeed } from '../state/follow-feed.ts'
import { Table } from '../state/table.ts'

/** Delay between the first event of a lab and its reading, ms: the events of a start of many nodes come together. */
const eventsMs = 1000

/** All labs of the service, kept up to date by its feed. */
export class LabList {
  readonly labs = new Table<LabProject>()
  /** Empty: the user may not see them. */
  readonly computes = new Table<Compute>()
  readonly isLoaded = signal(false)
  readonly #client: Patchbay
  /** Ids of labs that are read again soon. */
  readonly #due = new Set<string>()
  /** The round of readings that is under way. A round that begins when the whole list was read again takes its place. */
  #round: object | undefined

  constructor(client: Patchbay) {
    this.#client = client
  }

  /** Follows the list until the signal aborts. Never rejects. */
  follow(signal: AbortSignal): Promise<void> {
    return followFeed(this.#client, { signal, read: () => this.#read(), apply: (line) => this.#apply(line) })
  }

  async #read(): Promise<void> {
    const none = ignore('computes are shown by their ids')
    const [labs, computes] = await Promise.all([
      this.#client.call('GET /v2/projects'),
      this.#client.call('GET /v2/computes').catch(none),
    ])
    this.labs.reset(labs.map((it) => [it.project_id, it]))
    this.computes.reset((computes ?? []).map((it) => [it.compute_id, it]))
    this.isLoaded.value = true
    void this.#readEach(({ status, counts }) => status === 'opened' || counts === undefined)
  }

  /** Reads the states of links of open labs again, unless labs are being read: a slow service is not asked faster. Never rejects. */
  async readLinks(): Promise<void> {
    if (this.#round === undefined) await this.#readEach(({ status }) => status === 'opened')
  }

  /** Reads what the list lacks of some labs, one after the other. */
  async #readEach(isWanted: (lab: LabProject) => boolean): Promise<void> {
    const round = {}
    this.#round = round
    for (const { project_id } of this.labs.values().filter(isWanted)) {
      await this.#readLab(project_id)
      if (this.#round !== round) return
    }
    this.#round = undefined
  }

  async #readLab(project_id: string): Promise<void> {
    const lab = await this.#client
      .call('GET /v2/projects/{project_id}', { params: { project_id }, query: { links: 'yes' } })
      .catch(ignore('the lab is shown as it was'))
    const before = this.labs.get(project_id)
    // An event may have been faster.
    if (lab && before !== undefined && lab.revision >= before.revision) this.labs.put(project_id, lab)
  }

  #apply({ action, event, project_id }: ServiceLine): void {
    switch (action) {
      case 'compute.created':
      case 'compute.updated':
      case 'compute.deleted':
        return this.computes.apply(action, event.compute_id, event)
      case 'project.created':
      case 'project.updated':
      case 'project.opened':
      case 'project.closed':
        // Projects of computes have events of the same name, and no settings of a map.
        return 'revision' in event ? this.#changed(event) : undefined
      case 'project.deleted':
        return this.labs.delete(event.project_id)
      default:
        // Something of a lab has changed on a compute: most often a node or a link.
        if (project_id !== undefined) this.#readLater(project_id)
    }
  }

  #changed(lab: LabProject): void {
    this.#put(lab)
    if (lab.status === 'opened') this.#readLater(lab.project_id)
  }

  #readLater(id: string): void {
    if (this.#due.has(id) || !this.labs.has(id)) return
    this.#due.add(id)
    startTimer(() => {
      this.#due.delete(id)
      void this.#readLab(id)
    }, eventsMs)
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

  /** Starts all nodes of a lab, which is opened for it. */
  async start({ project_id }: LabProject): Promise<void> {
    const params = { project_id }
    await this.#client.call('POST /v2/projects/{project_id}/open', { params })
    await this.#client.call('POST /v2/projects/{project_id}/nodes/start', { params })
  }

  /** Stops all nodes of a lab. */
  async stop({ project_id, status }: LabProject): Promise<void> {
    if (status === 'opened')
      await this.#client.call('POST /v2/projects/{project_id}/nodes/stop', { params: { project_id } })
  }

  /** Saves the archive of a lab as a file. */
  async export({ project_id, name }: LabProject): Promise<void> {
    const stream = await this.#client.stream('GET /v2/projects/{project_id}/export', { params: { project_id } })
    saveFile(`${name}.gns3project`, await new Response(stream).blob())
  }

  /** Stops all nodes, then exports the lab. */
  async stopAndExport(lab: LabProject): Promise<void> {
    await this.stop(lab)
    await this.export(lab)
  }

  #put(lab: LabProject): void {
    this.labs.put(lab.project_id, lab)
  }
}
