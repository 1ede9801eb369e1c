import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { median, ms, ratio, target } from '../medians.ts'
import type { Row } from '../table.ts'
import { startDirect } from './direct.ts'
import { MachineLab } from './lab.ts'

const count = 20
const rounds = 5
const idleMs = 5000
/** A guest that halts as soon as it runs: firmware that boots would take the processors from the others. */
const halted = { ram: 16, bios_image: 'halt.bin' }
const wantedRatio = 2
const wantedCpuPercent = 1

/** Many small machines at once, beside as many emulators run directly, in turns; then what they cost while nothing happens. */
export async function crowd(): Promise<Row[]> {
  await using lab = await MachineLab.open('tcg')
  const empty = await lab.service.usage()
  await lab.image(halted.bios_image, haltingFirmware())
  const nodes = await all(Array.from({ length: count }), () => lab.create(halted))
  const times = { start: [] as number[], stop: [] as number[], directStart: [] as number[], directStop: [] as number[] }
  for (let round = -1; round < rounds; round++) {
    const start = await timed(() => all(nodes, (node) => lab.post(`${node}/start`)))
    const lines = await all(nodes, (node) => lab.get(node))
    const stop = await timed(() => all(nodes, (node) => lab.post(`${node}/stop`)))
    const began = performance.now()
    const machines = await all(lines, ({ command_line, node_directory }) => startDirect(command_line, node_directory))
    const directStart = performance.now() - began
    const directStop = await timed(() => all(machines, (machine) => machine.stop()))
    if (round < 0) continue
    times.start.push(start)
    times.stop.push(stop)
    times.directStart.push(directStart)
    times.directStop.push(directStop)
  }
  await all(nodes, (node) => lab.post(`${node}/start`))
  // What the last starts have left to do is not idling.
  await pause(2000)
  const before = await lab.service.usage()
  await pause(idleMs)
  const after = await lab.service.usage()
  const total = await lab.service.memoryMb()
  const percent = ((after.cpuMs - before.cpuMs) * 100) / idleMs
  const beside = (ours: readonly number[], direct: readonly number[]) =>
    `${ms(median(ours))}; directly ${ms(median(direct))}`
  const startRatio = median(times.start) / median(times.directStart)
  return [
    [
      `${count} machines, start at once`,
      `${startRatio.toFixed(2)} x`,
      `${beside(times.start, times.directStart)}, ${target(startRatio < wantedRatio, `${wantedRatio} x`)}`,
    ],
    [
      `${count} machines, stop at once`,
      ratio(median(times.stop), median(times.directStop)),
      beside(times.stop, times.directStop),
    ],
    [
      `${count} machines, memory of service and keeper`,
      `${after.memoryMb.toFixed(0)} MB`,
      `without machines ${empty.memoryMb.toFixed(0)} MB, with their emulators ${total.toFixed(0)} MB`,
    ],
    [
      `${count} idle machines, service and keeper`,
      `${percent.toFixed(2)} % CPU`,
      `over ${idleMs / 1000} s, ${target(percent < wantedCpuPercent, `${wantedCpuPercent} %`)}`,
    ],
  ]
}

/** 64 KB that end in the reset vector: interrupts off, and halt. */
function haltingFirmware(): Buffer {
  const image = Buffer.alloc(65_536)
  image.set([0xfa, 0xf4, 0xeb, 0xfd], 65_536 - 16)
  return image
}

const all = <T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<R[]> => Promise.all(items.map(run))

async function timed(run: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await run()
  return performance.now() - began
}
