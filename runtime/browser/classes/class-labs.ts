import { signal } from '@preact/signals'
import type { AnyNode, LabLine, LabNode, LabProject, Patchbay, ServiceLine } from '../../../src/client/patchbay.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { startTimer } from '../../../src/lib/async/pause.ts'
import { nameKey } from '../../../src/model/lab/names.ts'
import type { LabMap } from '../canvas/map-picture.tsx'
import { eventText } from '../state/event-text.ts'
import { followFeed } from '../state/follow-feed.ts'
import { Table } from '../state/table.ts'

/** Time from the last change of a lab to the reading of its map, ms: changes come many at a time, and the feed may be faster than the map. */
const quietMs = 1500

/** What happened last in a lab, and when the page learnt of it, ms since 1970. */
interface LastEvent {
  readonly text: string
  readonly at: number
  /** When the lab was changed last, as far as the page knew: another time says that more has happened since. */
  readonly changedAt: string | undefined
}

/** They stay for who leaves a wall and comes back: the service does not tell them again. */
const lastEvents = new Table<LastEvent>()

/** The labs of a class, kept up to date by the feed of the service: while nothing happens in them, nothing is read. */
export class ClassLabs {
  readonly labs = new Table<LabProject>()
  readonly maps = new Table<LabMap>()
  readonly events = lastEvents
  readonly isLoaded = signal(false)
  readonly #client: Patchbay
  readonly #key: string
  /** The nodes of all labs, by which events are put into words. */
  readonly #nodes = new Table<LabNode>()
  /** The timers of labs whose maps are read soon, by id. */
  readonly #due = new Map<string, () => void>()

  constructor(client: Patchbay, className: string) {
    this.#client = client
    this.#key = nameKey(className)
  }

  /** Follows the labs until the signal aborts. Never rejects. */
  follow(signal: AbortSignal): Promise<void> {
    return followFeed(this.#client, { signal, read: () => this.#read(signal), apply: (line) => this.#apply(line) })
  }

  async #read(over: AbortSignal): Promise<void> {
    const labs = await this.#client.call('GET /v2/projects')
    const own = labs.filter((it) => this.#isOurs(it))
    for (const { project_id, changed_at } of own)
      if (this.events.get(project_id)?.changedAt !== changed_at) this.events.delete(project_id)
    this.labs.reset(own.map((it) => [it.project_id, it]))
    this.isLoaded.value = true
    void this.#readMaps(over)
  }

  /** One after the other: the service has more to do than to draw maps. */
  async #readMaps(over: AbortSignal): Promise<void> {
    for (const id of this.labs.ids.peek()) if (!over.aborted) await this.#readMap(id)
  }

  async #readMap(id: string): Promise<void> {
    const params = { project_id: id }
    // Not as one topology: a browser keeps that for as long as nothing is edited, whatever runs.
    const read = await Promise.all([
      this.#client.call('GET /v2/projects/{project_id}/nodes', { params }),
      this.#client.call('GET /v2/projects/{project_id}/links', { params }),
      this.#client.call('GET /v2/projects/{project_id}/drawings', { params }),
    ]).catch(ignore('the map is shown as it was'))
    if (!read || !this.labs.has(id)) return
    const [nodes, links, drawings] = read
    for (const node of nodes) this.#nodes.put(node.node_id, node)
    this.maps.put(id, { nodes, links, drawings })
  }

  #isOurs(lab: LabProject): boolean {
    return lab.class !== undefined && nameKey(lab.class.name) === this.#key
  }

  #apply(line: ServiceLine): void {
    const { action, event, project_id } = line
    switch (action) {
      case 'project.created':
      case 'project.updated':
      case 'project.opened':
      case 'project.closed':
        // Projects of computes have events of the same name, and no class.
        if ('revision' in event && this.#isOurs(event)) this.#changed(event)
        return
      case 'project.deleted':
        return this.labs.delete(event.project_id)
      case 'node.created':
      case 'node.updated':
      case 'node.deleted':
        if (this.labs.has(event.project_id)) this.#nodeChanged(line as LabLine, event)
        return
      default:
        if (project_id !== undefined) this.#readLater(project_id)
    }
  }

  #changed(lab: LabProject): void {
    const before = this.labs.has(lab.project_id) ? this.labs.get(lab.project_id) : undefined
    this.labs.put(lab.project_id, lab)
    const event = this.events.get(lab.project_id)
    if (event !== undefined) this.events.put(lab.project_id, { ...event, changedAt: lab.changed_at })
    // Who comes and goes changes no map.
    if (before?.revision !== lab.revision || before.status !== lab.status) this.#readLater(lab.project_id)
  }

  #nodeChanged(line: LabLine, { node_id, project_id, status, status_reason }: AnyNode): void {
    const known = this.#nodes.has(node_id) ? this.#nodes.get(node_id) : undefined
    if (line.action !== 'node.updated' || (known !== undefined && known.status !== status)) {
      const { text } = eventText(line, { nodes: this.#nodes }) ?? {}
      if (text !== undefined) this.#tell(project_id, text)
    }
    const map = this.maps.has(project_id) ? this.maps.get(project_id) : undefined
    if (known !== undefined && map !== undefined && known.status !== status) {
      const now = { ...known, status, status_reason }
      this.#nodes.put(node_id, now)
      const withNow = (nodes: readonly LabNode[]) => nodes.map((it) => (it.node_id === node_id ? now : it))
      this.maps.put(project_id, { ...map, nodes: withNow(map.nodes) })
    }
    this.#readLater(project_id)
  }

  #tell(id: string, text: string): void {
    this.events.put(id, { text, at: Date.now(), changedAt: this.labs.get(id)?.changed_at })
  }

  #readLater(id: string): void {
    if (!this.labs.has(id)) return
    this.#due.get(id)?.()
    const read = () => {
      this.#due.delete(id)
      // It may be deleted by now.
      if (this.labs.has(id)) void this.#readMap(id)
    }
    this.#due.set(id, startTimer(read, quietMs))
  }
}
