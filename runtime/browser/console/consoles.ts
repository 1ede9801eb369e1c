import { signal } from '@preact/signals'

/** The open consoles, in tabs. */
export class Consoles {
  /** Ids of the nodes. */
  readonly tabs = signal<readonly string[]>([])
  readonly active = signal<string | undefined>(undefined)
  /** Nodes with output since their tab was shown last. */
  readonly news = signal<ReadonlySet<string>>(new Set())

  /** Opens the console of a node, or shows its tab. */
  open(id: string): void {
    if (!this.tabs.value.includes(id)) this.tabs.value = [...this.tabs.value, id]
    this.show(id)
  }

  show(id: string): void {
    this.active.value = id
    const news = new Set(this.news.value)
    if (news.delete(id)) this.news.value = news
  }

  close(id: string): void {
    const at = this.tabs.value.indexOf(id)
    this.tabs.value = this.tabs.value.filter((it) => it !== id)
    if (this.active.value === id) this.active.value = this.tabs.value[Math.max(0, at - 1)]
  }

  /** Marks the tab of a node that is not shown. */
  hasOutput(id: string): void {
    if (this.active.value !== id && !this.news.value.has(id)) this.news.value = new Set([...this.news.value, id])
  }
}
