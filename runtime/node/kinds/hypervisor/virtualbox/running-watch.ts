/** Tells of machines that stop or start by themselves. VirtualBox's command line has no events, so it is asked now and then. */
export class RunningWatch {
  readonly #ask: () => Promise<readonly string[]>
  readonly #periodMs: number
  readonly #changed: (uuid: string) => void
  /** Whether they run, of the machines that somebody wants to know of. */
  readonly #known = new Map<string, boolean>()
  #watchers = 0
  #timer: NodeJS.Timeout | undefined
  #isAsking = false

  /** `ask`: which machines run now. */
  constructor(ask: () => Promise<readonly string[]>, periodMs: number, changed: (uuid: string) => void) {
    this.#ask = ask
    this.#periodMs = periodMs
    this.#changed = changed
  }

  /** What a machine was found to be; from now on a change of it is told. */
  note(uuid: string, runs: boolean): void {
    this.#known.set(uuid, runs)
    this.#plan()
  }

  forget(uuid: string): void {
    this.#known.delete(uuid)
    this.#plan()
  }

  /** One more who wants to know, until the function that comes back is called. */
  enter(): () => void {
    this.#watchers++
    this.#plan()
    let isIn = true
    return () => {
      if (!isIn) return
      isIn = false
      this.#watchers--
      this.#plan()
    }
  }

  close(): void {
    this.#watchers = 0
    this.#known.clear()
    this.#plan()
  }

  /** Asked only while somebody wants to know and something runs; never twice at once. */
  #plan(): void {
    const isWanted = this.#watchers > 0 && [...this.#known.values()].includes(true)
    if (!isWanted) {
      clearTimeout(this.#timer)
      this.#timer = undefined
    } else if (this.#timer === undefined && !this.#isAsking) {
      this.#timer = setTimeout(() => void this.#look(), this.#periodMs).unref()
    }
  }

  async #look(): Promise<void> {
    this.#timer = undefined
    this.#isAsking = true
    try {
      const before = new Map(this.#known)
      const running = new Set(await this.#ask())
      for (const [uuid, ran] of before) {
        // What has been found out while VirtualBox was asked is newer than its answer.
        if (this.#known.get(uuid) !== ran || running.has(uuid) === ran) continue
        this.#known.set(uuid, !ran)
        this.#changed(uuid)
      }
    } catch {
      // It is asked again.
    } finally {
      this.#isAsking = false
      this.#plan()
    }
  }
}
