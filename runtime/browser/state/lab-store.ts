import { batch, computed, signal } from '@preact/signals'
import type {
  LabDrawing,
  LabJob,
  LabLine,
  LabLink,
  LabLinkState,
  LabNode,
  LabPresence,
  LabProject,
  LabSnapshot,
} from '../../../src/client/patchbay.ts'
import { type EventView, eventText } from './event-text.ts'
import { phasesIn } from './node-phase.ts'
import { Table } from './table.ts'
import { windowId } from './window-id.ts'

/** A lab at one moment, as requests read it. */
export interface LabReading {
  readonly project: LabProject
  readonly nodes: readonly LabNode[]
  readonly links: readonly LabLink[]
  readonly drawings: readonly LabDrawing[]
  readonly jobs: readonly LabJob[]
  readonly snapshots: readonly LabSnapshot[]
}

/** The rates of a link at one reading, frames per second. */
export interface RateSample {
  readonly ab: number
  readonly ba: number
}

/** Readings that a sparkline shows: about a minute. */
const maxSamples = 60
/** Events that are kept. */
const maxEvents = 200

/** A lab as the page knows it: a snapshot, and the numbered events since then. */
export class LabStore {
  readonly project = signal<LabProject | undefined>(undefined)
  readonly nodes = new Table<LabNode>()
  readonly links = new Table<LabLink>()
  readonly drawings = new Table<LabDrawing>()
  readonly jobs = new Table<LabJob>()
  readonly snapshots = new Table<LabSnapshot>()
  /** The nodes with which running jobs are busy. */
  readonly phases = computed(() => phasesIn(this.jobs.values()))
  /** The last events since the page was opened. */
  readonly events = signal<readonly EventView[]>([])
  /** The selections of the others at the lab, by client. */
  readonly presence = new Table<LabPresence>()
  /** The names of the others who have selected a node, a link or a drawing, by its id. */
  readonly selectedBy = computed(() => {
    const names = new Map<string, Set<string>>()
    for (const { name, selection } of this.presence.values())
      for (const id of selection) names.set(id, (names.get(id) ?? new Set()).add(name))
    return names
  })
  /** The last rates of each link. */
  readonly rates = new Table<readonly RateSample[]>()
  /** Why the lab is not there any more. */
  readonly end = signal<'closed' | 'deleted' | undefined>(undefined)
  /** Grows with each change of nodes, links, drawings and the lab itself. */
  readonly changes = signal(0)
  /** Number of the last event. */
  seq = 0
  #events = 0
  readonly #notice: (kind: 'warning' | 'error', message: string) => void

  /** `notice` is called with the messages of the service in the feed. */
  constructor(notice: (kind: 'warning' | 'error', message: string) => void = () => {}) {
    this.#notice = notice
  }

  reset({ project, nodes, links, drawings, jobs, snapshots }: LabReading): void {
    batch(() => {
      this.project.value = project
      this.nodes.reset(nodes.map((node) => [node.node_id, node]))
      this.links.reset(links.map((link) => [link.link_id, link]))
      this.drawings.reset(drawings.map((drawing) => [drawing.drawing_id, drawing]))
      this.jobs.reset(jobs.filter((job) => job.project_id === project.project_id).map((job) => [job.job_id, job]))
      this.snapshots.reset(snapshots.map((snapshot) => [snapshot.snapshot_id, snapshot]))
      this.end.value = undefined
      this.changes.value += 1
    })
  }

  /** Applies an event. Events before the snapshot may come again: each has the whole resource. Unknown events are ignored. */
  apply(line: LabLine): void {
    const { action, event, seq } = line
    if (seq !== undefined && seq > this.seq) this.seq = seq
    batch(() => {
      this.#log(line)
      if (/^(node|link|drawing|project)\.(created|updated|deleted)$/.test(action)) this.changes.value += 1
      switch (action) {
        case 'node.created':
        case 'node.updated':
        case 'node.deleted':
          return this.nodes.apply(action, event.node_id, event)
        case 'link.created':
        case 'link.updated':
        case 'link.deleted':
          if (action === 'link.deleted') this.rates.delete(event.link_id)
          return this.links.apply(action, event.link_id, event)
        case 'link.state':
          return this.#linkState(event)
        case 'drawing.created':
        case 'drawing.updated':
        case 'drawing.deleted':
          return this.drawings.apply(action, event.drawing_id, event)
        case 'job.created':
        case 'job.updated':
        case 'job.deleted':
          return this.jobs.apply(action, event.job_id, event)
        case 'snapshot.restored':
          // Nodes stop by it, in all windows at the lab.
          this.#notice('warning', `The lab was put back to “${event.name}”${line.by ? ` by ${line.by}` : ''}.`)
          return this.snapshots.put(event.snapshot_id, event)
        case 'snapshot.created':
        case 'snapshot.deleted':
          return this.snapshots.apply(action, event.snapshot_id, event)
        case 'project.created':
        case 'project.updated':
        case 'project.opened':
        case 'project.closed':
          this.end.value = action === 'project.closed' ? 'closed' : undefined
          this.project.value = event
          return
        case 'project.deleted':
          this.end.value = 'deleted'
          return
        case 'presence':
          return this.#meet(event)
        case 'log.error':
          return this.#notice('error', event.message)
        case 'log.warning':
          return this.#notice('warning', event.message)
      }
    })
  }

  /** Logs an event before it is applied: the names of resources that it deletes are still known. */
  #log(line: LabLine): void {
    const said = eventText(line, this)
    if (said === undefined) return
    const shown = { ...said, id: ++this.#events, at: Date.now(), by: line.by }
    this.events.value = [...this.events.value, shown].slice(-maxEvents)
  }

  #linkState(state: LabLinkState): void {
    const link = this.links.get(state.link_id)
    if (link === undefined) return
    this.links.put(state.link_id, { ...link, ...state })
    const samples = this.rates.get(state.link_id) ?? []
    const sample = { ab: state.traffic_ab.frames_per_s, ba: state.traffic_ba.frames_per_s }
    this.rates.put(state.link_id, [...samples, sample].slice(-maxSamples))
  }

  /** Takes the selection of another window at the lab. */
  #meet(presence: LabPresence): void {
    if (presence.client === windowId) return
    if (presence.present) this.presence.put(presenceId(presence), presence)
    else this.presence.delete(presenceId(presence))
  }

  /** Takes the selections of all windows at the lab: those that left while the connection was lost are gone. */
  meetAll(present: readonly LabPresence[]): void {
    const others = present.filter(({ client }) => client !== windowId)
    this.presence.reset(others.map((it) => [presenceId(it), it]))
  }
}

const presenceId = ({ client, name }: LabPresence): string => `${client}/${name}`
