import { signal } from '@preact/signals'
import type { CapturedFrame } from '../../../src/packets/capture-reader.ts'
import { type Summary, summarize } from '../../../src/packets/decode.ts'

/** Frames that are kept, and their bytes at most. */
export const maxFrames = 2000
const maxBytes = 8 << 20
/** Time between two changes of the table by frames, ms. */
const showMs = 50

/** A frame of the table. */
export interface Row extends Summary {
  /** Counted from the beginning of the capture. */
  readonly number: number
  readonly frame: CapturedFrame
}

interface Kept {
  readonly number: number
  readonly frame: CapturedFrame
  row?: Row
}

/** The last frames of a capture. Its memory is limited: older frames are only counted. */
export class PacketLog {
  /** Time of the first frame: seconds since 1970. */
  begin: number | undefined
  #kept: Kept[] = []
  #bytes = 0
  #words: readonly string[] = []
  #total = 0
  #lost = 0
  readonly #isPaused = signal(false)
  /** Changes with what is shown. */
  readonly #version = signal(0)
  #later: ReturnType<typeof setTimeout> | undefined

  /** What is shown now; a reader follows it. */
  get counts(): { readonly total: number; readonly lost: number; readonly shown: number; readonly version: number } {
    return { version: this.#version.value, total: this.#total, lost: this.#lost, shown: this.#kept.length }
  }

  get length(): number {
    return this.#kept.length
  }

  get isPaused(): boolean {
    return this.#isPaused.value
  }

  set isPaused(value: boolean) {
    this.#isPaused.value = value
  }

  /** All that is kept, for a file. */
  get frames(): CapturedFrame[] {
    return this.#kept.map(({ frame }) => frame)
  }

  /** A row of the table, decoded when it is wanted; 0 is the oldest one. */
  row(index: number): Row | undefined {
    const kept = this.#kept[index]
    return kept === undefined ? undefined : rowOf(kept)
  }

  /** Takes frames; their bytes are copied. While it is paused, they are only counted. `lost`: frames that never came, since the last call. */
  add(frames: readonly CapturedFrame[], lost = 0): void {
    if (frames.length === 0 && lost === 0) return
    if (frames[0] !== undefined) this.begin ??= timeOf(frames[0])
    this.#lost += lost
    const first = this.#total + 1
    this.#total += frames.length
    if (!this.#isPaused.peek()) {
      // Without a filter, frames that would be dropped at once are not copied.
      const from = this.#words.length === 0 ? Math.max(0, frames.length - maxFrames) : 0
      for (let index = from; index < frames.length; index++) {
        const kept: Kept = { number: first + index, frame: frames[index] as CapturedFrame }
        if (this.#matches(kept)) this.#keep(kept)
      }
      this.#shrink()
    }
    this.#later ??= setTimeout(() => this.#changed(), showMs)
  }

  /** Shows only frames that have each of these words, from what is kept and from now on. */
  filter(text: string): void {
    this.#words = text.toLowerCase().split(/\s+/).filter(Boolean)
    this.#kept = this.#kept.filter((it) => this.#matches(it))
    this.#bytes = this.#kept.reduce((sum, { frame }) => sum + frame.bytes.length, 0)
    this.#changed()
  }

  clear(): void {
    this.#kept = []
    this.#bytes = 0
    this.#changed()
  }

  #changed(): void {
    clearTimeout(this.#later)
    this.#later = undefined
    this.#version.value += 1
  }

  #keep(kept: Kept): void {
    // The bytes of the reader belong to a larger piece, which they would keep in memory.
    const frame = { ...kept.frame, bytes: kept.frame.bytes.slice() }
    this.#kept.push({ ...kept, frame, ...(kept.row !== undefined && { row: { ...kept.row, frame } }) })
    this.#bytes += frame.bytes.length
  }

  #shrink(): void {
    let gone = Math.max(0, this.#kept.length - maxFrames)
    for (let index = 0; index < gone; index++) this.#bytes -= this.#kept[index]?.frame.bytes.length ?? 0
    while (this.#bytes > maxBytes) this.#bytes -= this.#kept[gone++]?.frame.bytes.length ?? 0
    if (gone > 0) this.#kept.splice(0, gone)
  }

  #matches(kept: Kept): boolean {
    if (this.#words.length === 0) return true
    const { source, destination, protocol, info } = rowOf(kept)
    const text = `${source} ${destination} ${protocol} ${info}`.toLowerCase()
    return this.#words.every((word) => text.includes(word))
  }
}

function rowOf(kept: Kept): Row {
  kept.row ??= { ...summarize(kept.frame), number: kept.number, frame: kept.frame }
  return kept.row
}

/** The time of a frame, seconds since 1970. */
export const timeOf = ({ seconds, nanos }: CapturedFrame): number => seconds + nanos / 1e9
