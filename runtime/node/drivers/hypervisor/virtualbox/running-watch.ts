/** Reports VMs that stop or start. VBoxManage has no events, so the running VMs are polled. */
export class RunningWatch {
  readonly #list: () => Promise<readonly string[]>
  readonly #periodMs: number
  readonly #changed: (uuid: string) => void
  /** The last known state of each watched VM: whether it runs. */
  readonly #known = new Map<string, boolean>()
  readonly #watchers = new Set<object>()
  #timer: NodeJS.Timeout | undefined
  #isPolling = false

  /** `list` returns the running VMs. */
  constructor(list: () => Promise<readonly string[]>, periodMs: number, changed: (uuid: string) => void) {
    this.#list = list
    this.#periodMs = periodMs
    this.#changed = changed
  }

  /** Sets the state of a VM; later changes are reported. */
  note(uuid: string, runs: boolean): void {
    this.#known.set(uuid, runs)
    this.#schedule()
  }

  forget(uuid: string): void {
    this.#known.delete(uuid)
    this.#schedule()
  }

  /** Adds a watcher; the result removes it. */
  enter(): () => void {
    const watcher = {}
    this.#watchers.add(watcher)
    this.#schedule()
    return () => {
      this.#watchers.delete(watcher)
      this.#schedule()
    }
  }

  close(): void {
    this.#watchers.clear()
    this.#known.clear()
    this.#schedule()
  }

  /** Polls only while there are watchers and running VMs, one poll at a time. */
  #schedule(): void {
    const isNeeded = this.#watchers.size > 0 && [...this.#known.values()].includes(true)
    if (!isNeeded) {
      clearTimeout(this.#timer)
      this.#timer = undefined
    } else if (this.#timer === undefined && !this.#isPolling)
      this.#timer = setTimeout(() => void this.#poll(), this.#periodMs).unref()
  }

  async #poll(): Promise<void> {
    this.#timer = undefined
    this.#isPolling = true
    try {
      const before = new Map(this.#known)
      const running = new Set(await this.#list())
      for (const [uuid, ran] of before) {
        // A state that was noted during the poll is newer than its result.
        if (this.#known.get(uuid) !== ran || running.has(uuid) === ran) continue
        this.#known.set(uuid, !ran)
        this.#changed(uuid)
      }
    } catch {
      // The next poll tries again.
    } finally {
      this.#isPolling = false
      this.#schedule()
    }
  }
}
