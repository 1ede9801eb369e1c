const slots = 16
/** Size of a slot, bytes. A slot has complete records and is delivered when the next one might not fit. */
export const slotBytes = 512 << 10
const flagBytes = slots * 4

/** Memory of ended captures, for reuse: new memory must be cleared first and is freed late. */
const spare: SharedArrayBuffer[] = []
const maxSpare = 4

/**
 * Shared memory for captured frames on their way from the path to the recorder, at most 8 MiB. The writer fills free slots, the
 * reader frees them.
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

  /** Free slots for a new capture. */
  static borrow(): CaptureSlots {
    return new CaptureSlots(spare.pop() ?? new SharedArrayBuffer(flagBytes + slots * slotBytes))
  }

  /** Returns the slots for reuse; after this no thread may use them. */
  giveBack(): void {
    this.#isBusy.fill(0)
    if (spare.length < maxSpare) spare.push(this.memory)
  }

  /** Copies the bytes into the lowest free slot (this touches little memory); undefined when all are full. */
  fill(bytes: Uint8Array): number | undefined {
    for (let slot = 0; slot < slots; slot++) {
      if (Atomics.load(this.#isBusy, slot) !== 0) continue
      this.#bytes.set(bytes, slot * slotBytes)
      Atomics.store(this.#isBusy, slot, 1)
      return slot
    }
    return undefined
  }

  /** The content of a slot, valid until it is freed. */
  read(slot: number, length: number): Uint8Array {
    return this.#bytes.subarray(slot * slotBytes, slot * slotBytes + length)
  }

  free(slot: number): void {
    Atomics.store(this.#isBusy, slot, 0)
  }
}
