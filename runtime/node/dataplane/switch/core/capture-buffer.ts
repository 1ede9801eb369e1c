import { CaptureSlots, slotBytes } from './capture-slots.ts'
import { copyBytes } from './copy.ts'
import { at, type Counters } from './counters.ts'

const recordHeader = 16
const longestRecord = recordHeader + 65_536 + 4

/** Called when a slot holds complete records. */
export type HandOver = (row: number, slot: number, length: number) => void

/**
 * Collects the frames of a row as pcap records, and delivers them in batches. Never waits: frames that come too fast are left out.
 * Uses memory of its own, because small copies into shared memory are slow.
 */
export class CaptureBuffer {
  readonly memory: SharedArrayBuffer
  readonly #slots: CaptureSlots
  readonly #counters: Counters
  readonly #row: number
  readonly #handOver: HandOver
  readonly #bytes = new Uint8Array(new ArrayBuffer(slotBytes))
  readonly #view = new DataView(this.#bytes.buffer)
  #length = 0
  #frames = 0

  constructor(memory: SharedArrayBuffer, counters: Counters, row: number, handOver: HandOver) {
    this.memory = memory
    this.#slots = new CaptureSlots(memory)
    this.#counters = counters
    this.#row = row
    this.#handOver = handOver
  }

  get length(): number {
    return this.#length
  }

  append(frame: Uint8Array, offset: number, length: number, seconds: number, micros: number): void {
    const start = this.#length
    const view = this.#view
    view.setUint32(start, seconds, true)
    view.setUint32(start + 4, micros, true)
    view.setUint32(start + 8, length, true)
    view.setUint32(start + 12, length, true)
    copyBytes(frame, offset, this.#bytes, start + recordHeader, length)
    this.#length = start + recordHeader + length
    this.#frames += 1
    if (this.#length > slotBytes - longestRecord) this.flush()
  }

  flush(): void {
    const length = this.#length
    if (length === 0) return
    const slot = this.#slots.fill(this.#bytes.subarray(0, length))
    this.#counters.add(this.#row, slot === undefined ? at.captureMissed : at.captured, this.#frames)
    this.#length = 0
    this.#frames = 0
    if (slot !== undefined) this.#handOver(this.#row, slot, length)
  }
}
