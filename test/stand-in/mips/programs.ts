import { elf, words } from './elf.ts'

/**
 * Programs that dynamips boots as the image of a router with a MIPS processor (c7200, c3600, c2691, c3725, c3745). Its ROM
 * jumps to them at 0x80008000, where real images begin, too. They are put together by hand: a cross assembler would be 30 MB.
 */
const begin = 0x80008000
/** Where the memory is seen again through the TLB: IOS runs there, and an idle-PC value has 8 digits only there. */
const mapped = 0x60000000

const nop = 0
const [t0, t1, t2, t3, t4, t5] = [8, 9, 10, 11, 12, 13]
const lui = (to: number, value: number) => (0x3c << 24) | (to << 16) | value
const ori = (to: number, from: number, value: number) => (0x34 << 24) | (from << 21) | (to << 16) | value
const addiu = (to: number, from: number, value: number) => (0x24 << 24) | (from << 21) | (to << 16) | (value & 0xffff)
const jr = (to: number) => (to << 21) | 8
const beqAlways = (words: number) => (0x10 << 24) | (words & 0xffff)
const beqZero = (of: number, words: number) => beqAlways(words) | (of << 21)
const bneZero = (of: number, words: number) => (0x14 << 24) | (of << 21) | (words & 0xffff)
const andi = (to: number, from: number, value: number) => (0x30 << 24) | (from << 21) | (to << 16) | value
const lbu = (to: number, from: number, offset: number) => (0x90 << 24) | (from << 21) | (to << 16) | offset
const lw = (to: number, from: number, offset: number) => (0x8c << 24) | (from << 21) | (to << 16) | offset
const sw = (value: number, to: number, offset: number) => (0xac << 24) | (to << 21) | (value << 16) | offset
const or = (to: number, one: number, other: number) => (one << 21) | (other << 16) | (to << 11) | 0x25
const sll = (to: number, from: number, bits: number) => (from << 16) | (to << 11) | (bits << 6)
const bltz = (of: number, words: number) => (0x04 << 24) | (of << 21) | (words & 0xffff)
const sb = (value: number, to: number, offset: number) => (0xa0 << 24) | (to << 21) | (value << 16) | offset
const mtc0 = (from: number, register: number) => (0x40 << 24) | (4 << 21) | (from << 16) | (register << 11)
const tlbwi = 0x42000002
const [index, entryLo0, entryLo1, pageMask, entryHi, status] = [0, 2, 3, 5, 10, 12]

const load = (to: number, value: number) => [lui(to, value >>> 16), ori(to, to, value & 0xffff)]

/** Maps 32 MB at a virtual address. */
const mapTo = (entry: number, virtual: number, physical: number, isDevice: boolean) => {
  // Written to, valid, of all, and cached unless it is a device.
  const page = (at: number) => ((at >>> 12) << 6) | (isDevice ? 0x17 : 0x1f)
  return [
    ...[mtc0(0, status), nop], // no interrupts
    ...load(t0, 0x01ffe000), // pages of 16 MB
    mtc0(t0, pageMask),
    ...[ori(t0, 0, entry), mtc0(t0, index)],
    ...load(t0, virtual),
    mtc0(t0, entryHi),
    ...load(t0, page(physical)),
    mtc0(t0, entryLo0),
    ...load(t0, page(physical + 0x1000000)),
    mtc0(t0, entryLo1),
    ...[tlbwi, nop, nop],
  ]
}
/** The memory, seen at `mapped`. */
const mapping = mapTo(0, mapped, 0, false)
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
  c3725: { at: 0x70100000, status: 5 << 3, data: 0 },
} as const
/** Devices of a c3725 from 0x3c000000 on. */
const devicesOfC3725 = mapTo(1, 0x70000000, 0x3c000000, true)

/** Greets on its console, and then sends back what is typed there. */
export function echoing(platform: keyof typeof consoles): Buffer {
  const { at, status: state, data } = consoles[platform]
  const greeting = [...Buffer.from('echo ready\r\n')].flatMap((byte) => [ori(t2, 0, byte), sb(t2, t3, data)])
  // Dynamips 0.2.14 may mix up what is written in the moment in which a client connects, and the keeper connects soon.
  const pause = [...load(t0, 50_000_000), addiu(t0, t0, -1), bneZero(t0, -2), nop]
  const start = [...devicesOfC3725, ...load(t3, at), ...pause, ...greeting]
  // Dynamips stops a router only where a jump to a register goes through it.
  const loop = load(t1, begin + (start.length + 2) * 4)
  const echo = [lbu(t2, t3, state), andi(t2, t2, 1), beqZero(t2, 3), nop, lbu(t2, t3, data), sb(t2, t3, data)]
  return elf(begin, words([...start, ...loop, ...echo, jr(t1), nop]))
}

/** The registers of the two Ethernet ports of a GT96100, the card in slot 0 of c2691, c3725 and c3745. They are little-endian. */
const ports = [0xb4084800, 0xb4088800] as const
const registers = { configuration: 0, command: 0x48, firstRx: 0x80, currentRx: 0xa0, currentTx: 0xe0 } as const
const swapped = (value: number) =>
  Buffer.from(words([value]))
    .swap32()
    .readUInt32BE(0)
const [enabledForAll, receive, transmit] = [0x4081, 0x80, 0x01000000]
/** A descriptor: sizes, state, the next descriptor, and the buffer. The device owns one with the first bit of its state. */
const [sizes, state, next, buffer] = [0, 4, 8, 12]
const [owned, wholeFrame] = [0x80000000, 0x80030000]
const bufferBytes = 1600
const uncached = 0xa0000000
/** Each port has a ring of descriptors for what it receives, so that frames in quick succession are not lost. */
const ringLength = 8
const rxOf = (port: number, at = 0) => 0x100000 + port * 0x10000 + at * 0x10
const bufferOf = (port: number, at: number) => rxOf(port) + 0x1000 + at * 0x800
const txOf = (port: number) => rxOf(port) + 0x100
/** The registers of the processor that have the next descriptor of a port. */
const heads = [16, 17] as const

/** Sends each frame that one Ethernet port of a GT96100 receives out of the other one. */
export const bridging = (() => {
  const put = (value: number, base: number, offset: number) => [...load(t2, value), sw(t2, base, offset)]
  const setUp = (port: 0 | 1) => [
    ...Array.from({ length: ringLength }, (_, at) => [
      ...load(t4, uncached | rxOf(port, at)),
      ...[...put(bufferBytes << 16, t4, sizes), ...put(rxOf(port, (at + 1) % ringLength), t4, next)],
      ...[...put(bufferOf(port, at), t4, buffer), ...put(owned, t4, state)],
    ]).flat(),
    ...load(heads[port], uncached | rxOf(port)),
    ...load(t5, uncached | txOf(port)),
    ...[...put(0, t5, state), ...put(txOf(port), t5, next)],
    ...load(t3, ports[port]),
    ...put(swapped(enabledForAll), t3, registers.configuration),
    ...put(swapped(rxOf(port)), t3, registers.firstRx),
    ...put(swapped(rxOf(port)), t3, registers.currentRx),
    ...put(swapped(txOf(port)), t3, registers.currentTx),
    ...put(swapped(receive), t3, registers.command),
  ]
  const pass = (from: 0 | 1, to: 0 | 1) => {
    const head = heads[from]
    const send = [
      // The size of a received frame has that of its checksum.
      ...[lw(t2, head, sizes), andi(t2, t2, 0xffff), addiu(t2, t2, -4), sll(t2, t2, 16), sw(t2, t5, sizes)],
      ...[lw(t2, head, buffer), sw(t2, t5, buffer)],
      ...[...put(wholeFrame, t5, state), ...put(swapped(receive | transmit), t3, registers.command)],
      ...[lw(t2, t5, state), bltz(t2, -2), nop],
      ...[...put(bufferBytes << 16, head, sizes), ...put(owned, head, state)],
      ...[lw(head, head, next), ...load(t2, uncached), or(head, head, t2)],
    ]
    return [
      ...[...load(t5, uncached | txOf(to)), ...load(t3, ports[to])],
      ...[lw(t2, head, state), bltz(t2, send.length + 1), nop, ...send],
    ]
  }
  const start = [mtc0(0, status), nop, ...setUp(0), ...setUp(1)]
  const loop = load(t1, begin + (start.length + 2) * 4)
  return elf(begin, words([...start, ...loop, ...pass(0, 1), ...pass(1, 0), jr(t1), nop]))
})()

/** Works all the time, in one place that dynamips never leaves: no idle-PC value makes it rest. */
export const busy = throughTlb([beqAlways(-1), nop])

/** Is to be loaded where there is no memory. */
export const elsewhere = elf(0xd0000000, words([beqAlways(-1), nop]))
