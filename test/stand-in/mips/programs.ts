import { elf, words } from './elf.ts'

/**
 * Programs that dynamips boots as the image of a router with a MIPS processor (c7200, c3600, c2691, c3725, c3745). Its ROM
 * jumps to them at 0x80008000, where real images begin, too. They are put together by hand: a cross assembler would be 30 MB.
 */
const begin = 0x80008000
/** Where the memory is seen again through the TLB: IOS runs there, and an idle-PC value has 8 digits only there. */
const mapped = 0x60000000

const nop = 0
const [t0, t1, t2, t3] = [8, 9, 10, 11]
const lui = (to: number, value: number) => (0x3c << 24) | (to << 16) | value
const ori = (to: number, from: number, value: number) => (0x34 << 24) | (from << 21) | (to << 16) | value
const addiu = (to: number, from: number, value: number) => (0x24 << 24) | (from << 21) | (to << 16) | (value & 0xffff)
const jr = (to: number) => (to << 21) | 8
const beqAlways = (words: number) => (0x10 << 24) | (words & 0xffff)
const beqZero = (of: number, words: number) => beqAlways(words) | (of << 21)
const andi = (to: number, from: number, value: number) => (0x30 << 24) | (from << 21) | (to << 16) | value
const lbu = (to: number, from: number, offset: number) => (0x90 << 24) | (from << 21) | (to << 16) | offset
const sb = (value: number, to: number, offset: number) => (0xa0 << 24) | (to << 21) | (value << 16) | offset
const mtc0 = (from: number, register: number) => (0x40 << 24) | (4 << 21) | (from << 16) | (register << 11)
const tlbwi = 0x42000002
const [index, entryLo0, entryLo1, pageMask, entryHi, status] = [0, 2, 3, 5, 10, 12]

const load = (to: number, value: number) => [lui(to, value >>> 16), ori(to, to, value & 0xffff)]

/** Maps 32 MB of memory at `mapped`. */
const mapping = [
  ...[mtc0(0, status), nop], // no interrupts
  ...load(t0, 0x01ffe000), // pages of 16 MB
  ...[mtc0(t0, pageMask), mtc0(0, index)],
  ...load(t0, mapped),
  mtc0(t0, entryHi),
  ...[ori(t0, 0, 0x1f), mtc0(t0, entryLo0)], // page 0: cached, written to, valid, of all
  ...load(t0, ((0x1000000 >>> 12) << 6) | 0x1f),
  mtc0(t0, entryLo1),
  ...[tlbwi, nop, nop],
]
/** Where a program goes on after that. */
const there = mapped + (begin & 0xffffff) + (mapping.length + 4) * 4
const throughTlb = (program: readonly number[]) =>
  elf(begin, words([...mapping, ...load(t1, there), jr(t1), nop, ...program]))

const steps = 25
const stepBytes = 12
/** The addresses of the steps of `idling`. */
export const ring = Array.from({ length: steps }, (_, step) => there + 8 + step * stepBytes)

/**
 * Goes round in a ring like the loop in which a router waits for something to do. Each step takes a 25th of the time, and
 * dynamips proposes what it finds in 20 to 80 of its 1000 looks; it looks only where a jump goes through it, such as to
 * a register.
 */
export const idling = throughTlb([
  ...load(t0, ring[0] ?? 0),
  ...ring.flatMap((_, step) => [addiu(t0, t0, step + 1 < steps ? stepBytes : -step * stepBytes), jr(t0), nop]),
])

/** The serial chips of the consoles: where their registers are, and those of the status (bit 0: a byte is there) and of the data. */
const consoles = {
  c7200: { at: 0xbe840000, status: 0x40c, data: 0x41c },
  c3600: { at: 0xbe840000, status: 5 << 3, data: 0 },
} as const

/** Greets on its console, and then sends back what is typed there. */
export function echoing(platform: keyof typeof consoles): Buffer {
  const { at, status: state, data } = consoles[platform]
  const greeting = [...Buffer.from('echo ready\r\n')].flatMap((byte) => [ori(t2, 0, byte), sb(t2, t3, data)])
  const start = [mtc0(0, status), nop, ...load(t3, at), ...greeting]
  // Dynamips stops a router only where a jump to a register goes through it.
  const loop = load(t1, begin + (start.length + 2) * 4)
  const echo = [lbu(t2, t3, state), andi(t2, t2, 1), beqZero(t2, 3), nop, lbu(t2, t3, data), sb(t2, t3, data)]
  return elf(begin, words([...start, ...loop, ...echo, jr(t1), nop]))
}

/** Works all the time, in one place that dynamips never leaves: no idle-PC value makes it rest. */
export const busy = throughTlb([beqAlways(-1), nop])

/** Is to be loaded where there is no memory. */
export const elsewhere = elf(0xd0000000, words([beqAlways(-1), nop]))
