import { createWriteStream, type WriteStream } from 'node:fs'

/** What was tried, and what was lost. */
export class Tally {
  readonly #tries = new Map<string, number>()
  readonly losses: string[] = []
  readonly #began = performance.now()
  readonly #events: WriteStream

  /** `file` gets a line for everything that happened. */
  constructor(file: string) {
    this.#events = createWriteStream(file)
  }

  tried(what: string, count = 1): void {
    this.#tries.set(what, (this.#tries.get(what) ?? 0) + count)
  }

  happened(what: string): string {
    const text = `${((performance.now() - this.#began) / 1000).toFixed(1)} s: ${what}`
    this.#events.write(`${text}\n`)
    return text
  }

  lost(what: string): void {
    const text = this.happened(what)
    this.losses.push(text)
    console.error(`LOST at ${text}`)
  }

  print(): void {
    const width = Math.max(...[...this.#tries.keys()].map(({ length }) => length))
    for (const [what, count] of [...this.#tries].sort(([a], [b]) => a.localeCompare(b)))
      console.log(`${what.padEnd(width)}  ${count}`)
    console.log(`${'losses'.padEnd(width)}  ${this.losses.length}`)
    for (const loss of this.losses) console.log(`  ${loss}`)
  }
}
