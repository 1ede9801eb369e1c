import { copyBytes } from './copy.ts'

/** Time between two buckets of the wheel, ms. */
const tickMs = 0.25
const buckets = 8192
const mask = buckets - 1

/** Longest frame that fits a slot, bytes; longer frames get separate memory. */
const slotBytes = 2048
const slotsPerBlock = 512
/** Number of slots: at most 64 MiB of frames wait. */
const maxSlots = 32 * 1024
const maxLargeBytes = 32 << 20
const none = -1

/** A block of slots. */
export interface Block {
  readonly bytes: Uint8Array
  /** Its address, for system calls. */
  readonly address: number
}

/**
 * Delayed frames in a timer wheel. Insertion and removal take constant time. Frames of one bucket leave in their order of arrival.
 * Frames due after more than one turn of the wheel stay in their bucket.
 */
export class DelayQueue {
  readonly #heads = new Int32Array(buckets).fill(none)
  readonly #tails = new Int32Array(buckets).fill(none)
  readonly #occupied = new Uint32Array(buckets / 32)
  readonly #next = new Int32Array(maxSlots)
  readonly #due = new Float64Array(maxSlots)
  readonly #ends = new Float64Array(maxSlots)
  readonly #rows = new Int32Array(maxSlots)
  readonly #lengths = new Int32Array(maxSlots)
  readonly #blocks: Block[] = []
  /** Frames that do not fit a slot. */
  readonly #large = new Map<number, Block>()
  readonly #makeBlock: (bytes: number) => Block
  #largeBytes = 0
  #free = none
  /** The last tick whose frames were taken. */
  #tick = 0
  #size = 0

  constructor(makeBlock: (bytes: number) => Block) {
    this.#makeBlock = makeBlock
  }

  get size(): number {
    return this.#size
  }

  /** Copies the frame; false when the queue is full. `row` counts the frame if it cannot be delivered. */
  put(bytes: Uint8Array, offset: number, length: number, due: number, now: number, end: number, row: number): boolean {
    const isLarge = length > slotBytes
    if (isLarge && this.#largeBytes + length > maxLargeBytes) return false
    const slot = this.#takeSlot()
    if (slot === none) return false
    const block = isLarge ? this.#makeBlock(length) : (this.#blocks[slot >> 9] as Block)
    if (isLarge) {
      this.#large.set(slot, block)
      this.#largeBytes += length
    }
    copyBytes(bytes, offset, block.bytes, isLarge ? 0 : offsetOf(slot), length)
    this.#lengths[slot] = length
    this.#ends[slot] = end
    this.#rows[slot] = row
    this.#due[slot] = due
    if (this.#size === 0) this.#tick = Math.floor(now / tickMs)
    // The bucket after the due time, so that no frame leaves early; never a bucket that was already emptied.
    this.#append(Math.max(Math.ceil(due / tickMs), this.#tick + 1) & mask, slot)
    this.#size += 1
    return true
  }

  /**
   * Takes all due frames in order; a frame that is sent after this call overtakes none of them. `take` gets the end, the row, the
   * block, the offset in it and the length. The bytes stay valid until `release`.
   */
  takeDue(
    now: number,
    deliver: (end: number, row: number, block: Block, start: number, length: number) => void,
    release: () => void,
  ): void {
    const last = Math.floor(now / tickMs)
    // Tick by tick even after more than one turn, so that frames of an earlier turn leave first.
    for (let tick = this.#tick + 1; tick <= last && this.#size > 0; tick++) {
      if (this.#heads[tick & mask] !== none) this.#takeBucket(tick & mask, tick * tickMs, deliver, release)
    }
    this.#tick = Math.max(this.#tick, last)
    const current = (last + 1) & mask
    if (this.#heads[current] !== none) this.#takeBucket(current, now, deliver, release)
  }

  /** Time of the next due frame, ms; Infinity when the queue is empty. */
  get nextDue(): number {
    if (this.#size === 0) return Number.POSITIVE_INFINITY
    const start = (this.#tick + 1) & mask
    for (let step = 0; step <= this.#occupied.length; step++) {
      const word = ((start >> 5) + step) & (this.#occupied.length - 1)
      let bits = this.#occupied[word] as number
      // In the first word, only the bits from the start on; the other bits at the end of the round.
      if (step === 0) bits &= -1 << (start & 31)
      if (bits === 0) continue
      const bucket = word * 32 + 31 - Math.clz32(bits & -bits)
      return (this.#tick + 1 + ((bucket - start) & mask)) * tickMs
    }
    return Number.POSITIVE_INFINITY
  }

  #takeBucket(
    bucket: number,
    time: number,
    deliver: (end: number, row: number, block: Block, start: number, length: number) => void,
    release: () => void,
  ): void {
    let slot = this.#heads[bucket] as number
    let taken = none
    this.#heads[bucket] = none
    this.#tails[bucket] = none
    this.#setOccupied(bucket, false)
    while (slot !== none) {
      const next = this.#next[slot] as number
      if ((this.#due[slot] as number) > time) this.#append(bucket, slot)
      else {
        const large = this.#large.get(slot)
        const block = large ?? (this.#blocks[slot >> 9] as Block)
        const start = large === undefined ? offsetOf(slot) : 0
        deliver(this.#ends[slot] as number, this.#rows[slot] as number, block, start, this.#lengths[slot] as number)
        this.#next[slot] = taken
        taken = slot
        this.#size -= 1
      }
      slot = next
    }
    release()
    while (taken !== none) {
      const next = this.#next[taken] as number
      this.#giveBack(taken)
      taken = next
    }
  }

  /** Drops the frames of an end that is gone: until they are due they would take the room of others. Looks at every frame that waits. */
  forget(end: number): void {
    for (let bucket = 0; bucket < buckets && this.#size > 0; bucket++) {
      let slot = this.#heads[bucket] as number
      if (slot === none) continue
      this.#heads[bucket] = none
      this.#tails[bucket] = none
      this.#setOccupied(bucket, false)
      while (slot !== none) {
        const next = this.#next[slot] as number
        if (this.#ends[slot] === end) {
          this.#giveBack(slot)
          this.#size -= 1
        } else this.#append(bucket, slot)
        slot = next
      }
    }
  }

  #giveBack(slot: number): void {
    if (this.#large.delete(slot)) this.#largeBytes -= this.#lengths[slot] as number
    this.#next[slot] = this.#free
    this.#free = slot
  }

  #append(bucket: number, slot: number): void {
    const tail = this.#tails[bucket] as number
    this.#next[slot] = none
    if (tail === none) this.#heads[bucket] = slot
    else this.#next[tail] = slot
    this.#tails[bucket] = slot
    this.#setOccupied(bucket, true)
  }

  #setOccupied(bucket: number, isOccupied: boolean): void {
    const word = bucket >> 5
    const bit = 1 << (bucket & 31)
    this.#occupied[word] = isOccupied ? (this.#occupied[word] as number) | bit : (this.#occupied[word] as number) & ~bit
  }

  #takeSlot(): number {
    if (this.#free === none) {
      const first = this.#blocks.length * slotsPerBlock
      if (first >= maxSlots) return none
      this.#blocks.push(this.#makeBlock(slotsPerBlock * slotBytes))
      for (let slot = first + slotsPerBlock - 1; slot >= first; slot--) {
        this.#next[slot] = this.#free
        this.#free = slot
      }
    }
    const slot = this.#free
    this.#free = this.#next[slot] as number
    return slot
  }
}

const offsetOf = (slot: number): number => (slot & (slotsPerBlock - 1)) * slotBytes
