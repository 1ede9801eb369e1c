import { KeyedMutex } from '../../lib/async/keyed-mutex.ts'
import { Slots } from '../../lib/async/slots.ts'
import type { FeedItem, NumberedEvent } from '../../model/event.ts'
import type { Member } from '../members/members.ts'
import type { ProjectLocator } from '../placement/project-locator.ts'

/**
 * Most events that wait until the computes of their projects are found; beyond it the feed is not read further. A line of a feed may have 4
 * MiB, and a Worker has 128 MB.
 */
const maxWaiting = 16
/** Most searches for projects at a time: each asks all computes. */
const maxSearches = 4

export interface MemberFeedOptions {
  readonly locator: Pick<ProjectLocator, 'knownAt' | 'isAt'>
  readonly member: Member
  /** Called with each event of a project that the compute has. */
  readonly emit: (event: NumberedEvent) => void
  /** Called for each event of a project that the compute does not have. */
  readonly foreign: () => void
  /** Called when events may have been missed. */
  readonly gap: () => void
  /** Called with the number up to which all events were emitted. */
  readonly told: (seq: number) => void
}

/**
 * The items of a feed of one compute, on their way to the readers. The events of a project keep their order. An event whose project
 * has to be searched for waits, and the events of other projects pass it: a compute that does not answer delays every search.
 */
export class MemberFeed {
  readonly #options: MemberFeedOptions
  /** In the order in which they came. */
  readonly #waiting = new Set<NumberedEvent>()
  readonly #turns = new KeyedMutex()
  readonly #searches = new Slots(maxSearches)
  #isOver = false
  #seq: number | undefined
  /** Called when fewer events wait. */
  #wake = () => {}

  constructor(options: MemberFeedOptions) {
    this.#options = options
  }

  /** Resolves when the next item may be read. */
  async handle(item: FeedItem): Promise<void> {
    if (item.kind === 'event') await this.#handleEvent(item.event)
    else if (item.kind !== 'ping') {
      // Readers will read the resources again: they do not need the events before.
      this.#drop()
      this.#options.gap()
    }
    if (this.#isOver) return
    this.#seq = seqOf(item) ?? this.#seq
    this.#mark()
  }

  /** The feed has ended: events that wait are dropped. The next feed has them again, or readers get `resync`. */
  end(): void {
    this.#isOver = true
    this.#drop()
  }

  async #handleEvent(event: NumberedEvent): Promise<void> {
    const { locator, member } = this.#options
    const { project_id } = event
    if (!this.#turns.isBusy(project_id)) {
      const known = await locator.knownAt(project_id, member)
      if (this.#isOver) return
      if (known !== undefined) return this.#decide(event, known)
    }
    if (this.#waiting.size >= maxWaiting) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      if (this.#isOver) return
    }
    this.#waiting.add(event)
    void this.#turns.run(project_id, () => this.#find(event))
  }

  /** Never rejects. */
  async #find(event: NumberedEvent): Promise<void> {
    const { locator, member } = this.#options
    const search = async () => this.#waiting.has(event) && (await locator.isAt(event.project_id, member))
    const isTheirs = (await locator.knownAt(event.project_id, member)) ?? (await this.#searches.run(search))
    if (!this.#waiting.delete(event)) return
    this.#decide(event, isTheirs)
    this.#mark()
    this.#wake()
  }

  #decide(event: NumberedEvent, isTheirs: boolean): void {
    if (isTheirs) this.#options.emit(event)
    else this.#options.foreign()
  }

  #drop(): void {
    this.#waiting.clear()
    this.#wake()
  }

  #mark(): void {
    if (this.#waiting.size === 0 && this.#seq !== undefined) this.#options.told(this.#seq)
  }
}

/** The number up to which all events were emitted with this item; undefined: unchanged. */
export function seqOf(item: FeedItem): number | undefined {
  if (item.kind === 'dropped') return undefined
  return item.kind === 'event' ? item.event.seq : item.seq
}
