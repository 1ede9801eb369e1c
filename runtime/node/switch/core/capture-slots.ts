const slots = 16
/** Whole records; a slot is handed over when the next one may not fit. */
export const slotBytes = 512 << 10
const flagBytes = slots * 4

/** Memory of captures that ended; new memory has to be cleared first, and comes back late. */
const spare: SharedArrayBuffer[] = []
const maxSpare = 4

/**
 * Memory through which captured frames go from the path to whoever stores them: at most 8 MiB of them wait. The writer fills a
 * slot that is free, the reader frees it when it has done with it.
 */
export class CaptureSlots {
  readonly memory: SharedArrayBuffer
  readonly #isBusy: Int32Array
  readonly #bytes: Uint8Array

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#isBusy = new Int32Array(memory, 0, slots)
    this.#bytes = new Uint8Array(memory, flagBytes)
  }

  /** Slots that are free, for a new capture. */
  static borrow(): CaptureSlots {
    return new CaptureSlots(spare.pop() ?? new SharedArrayBuffer(flagBytes + slots * slotBytes))
  }

  /** For the next capture. Nobody may write or read them any more. */
  giveBack(): void {
    this.#isBusy.fill(0)
    if (spare.length < maxSpare) spare.push(this.memory)
  }

  /** Copies the bytes into a free slot, the lowest so that little memory is touched; undefined when there is none. */
  fill(bytes: Uint8Array): number | undefined {
    for (let slot = 0; slot < slots; slot++) {
      if (Atomics.load(this.#isBusy, slot) !== 0) continue
      this.#bytes.set(bytes, slot * slotBytes)
      Atomics.store(this.#isBusy, slot, 1)
      return slot
    }
    return undefined
  }

  /** What is in a slot, until it is freed. */
  read(slot: number, length: number): Uint8Array {
    return this.#bytes.subarray(slot * slotBytes, slot * slotBytes + length)
  }

  free(slot: number): void {
    Atomics.store(this.#isBusy, slot, 0)
  }
}
