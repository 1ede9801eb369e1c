import { type ReadonlySignal, signal } from '@preact/signals'

/** Panes that are shown side by side at most. */
const maxPanes = 6

/** A console on the page. */
export interface OpenConsole {
  /** Sends what was typed. */
  readonly send: (text: string) => void
  readonly focus: () => void
  /** Of a console of text. */
  readonly terminal?: {
    /** Selects the next match of a text, or the one before. False: there is none. */
    readonly find: (text: string, isBack: boolean) => boolean
    /** All that is on the screen and above it. */
    readonly text: () => string
    readonly paste: (text: string) => void
  }
  /** Of a console that is a picture. */
  readonly screen?: {
    /** What the guest has copied last. */
    readonly clipboard: ReadonlySignal<string>
    /** Puts a text into the clipboard of the guest. */
    readonly give: (text: string) => void
    readonly pressCtrlAltDel: () => void
  }
}

/** What is open below the map, in tabs: consoles, by the ids of their nodes, and packets, by the ids of their links. */
export class Dock {
  readonly tabs = signal<readonly string[]>([])
  /** Tabs that are shown, side by side. */
  readonly panes = signal<readonly string[]>([])
  /** The pane to which the buttons apply. */
  readonly active = signal<string | undefined>(undefined)
  /** The tab that the user opened last: it takes the focus when it is shown. A tab that is shown as another was closed does not. */
  wanted: string | undefined
  /** Tabs with output since they were shown last. */
  readonly news = signal<ReadonlySet<string>>(new Set())
  /** Whether what is typed goes to all consoles that are shown. */
  readonly isShared = signal(false)
  readonly isSearching = signal(false)
  readonly #consoles = new Map<string, OpenConsole>()

  /** Opens a tab, or shows it. */
  open(id: string): void {
    if (!this.tabs.value.includes(id)) this.tabs.value = [...this.tabs.value, id]
    this.show(id)
  }

  /** Shows a tab in the place of the active one. */
  show(id: string): void {
    this.wanted = id
    this.#put(id)
    this.#consoles.get(id)?.focus()
  }

  #put(id: string): void {
    const { value: panes } = this.panes
    if (!panes.includes(id)) {
      const at = this.active.value === undefined ? -1 : panes.indexOf(this.active.value)
      this.panes.value = at < 0 ? [...panes, id] : panes.with(at, id)
    }
    this.activate(id)
  }

  activate(id: string): void {
    this.active.value = id
    this.#read([id])
  }

  /** Shows a tab beside the others, or no longer. */
  toggle(id: string): void {
    const { value: panes } = this.panes
    if (!panes.includes(id)) {
      if (panes.length === maxPanes) return
      this.wanted = id
      this.panes.value = [...panes, id]
      this.activate(id)
    } else if (panes.length > 1) this.#hide(id)
  }

  /** Shows all tabs side by side, or the active one alone. */
  spread(): void {
    const { value: active = '' } = this.active
    const { value: tabs } = this.tabs
    const first = Math.max(0, tabs.indexOf(active) - maxPanes + 1)
    this.panes.value = this.panes.value.length > 1 ? [active] : tabs.slice(first, first + maxPanes)
    this.#read(this.panes.value)
    if (this.panes.value.length === 1) this.isShared.value = false
  }

  /** `isGone`: its node or link was deleted. The focus is elsewhere then, and stays there. */
  close(id: string, isGone = false): void {
    const at = this.tabs.value.indexOf(id)
    this.tabs.value = this.tabs.value.filter((it) => it !== id)
    if (this.panes.value.includes(id)) this.#hide(id)
    const next = this.tabs.value[Math.max(0, at - 1)]
    if (this.panes.value.length === 0 && next !== undefined) isGone ? this.#put(next) : this.show(next)
  }

  /** Marks a tab that is not shown. */
  hasOutput(id: string): void {
    if (!this.panes.value.includes(id) && !this.news.value.has(id)) this.news.value = new Set([...this.news.value, id])
  }

  /** Registers the console of a node; the result removes it. */
  add(id: string, console: OpenConsole): () => void {
    this.#consoles.set(id, console)
    return () => void this.#consoles.delete(id)
  }

  console(id: string | undefined): OpenConsole | undefined {
    return id === undefined ? undefined : this.#consoles.get(id)
  }

  /** Sends what was typed on a console: to it, or to all that are shown. */
  type(id: string, text: string): void {
    const { value: panes } = this.panes
    for (const it of this.isShared.value && panes.includes(id) ? panes : [id]) this.#consoles.get(it)?.send(text)
  }

  #hide(id: string): void {
    this.panes.value = this.panes.value.filter((it) => it !== id)
    if (this.active.value === id) this.active.value = this.panes.value[0]
    if (this.panes.value.length < 2) this.isShared.value = false
  }

  #read(ids: readonly string[]): void {
    const news = new Set([...this.news.value].filter((it) => !ids.includes(it)))
    if (news.size !== this.news.value.size) this.news.value = news
  }
}
