import { rmSync } from 'node:fs'
import { netioDirectory } from '../../../runtime/node/dataplane/fast/netio-directory.ts'
import type { Row } from '../table.ts'
import { Bed, type BedSetup, cost, type Figures, inTurns, kpps, ratio } from './bed.ts'

const highestId = 400
let nextId = highestId

/** Ports of IOU instances beside UDP guests, in the same run; senders join no frames. */
export async function netio(): Promise<Row[]> {
  const rows: Row[] = []
  for (const length of [64, 1400]) {
    const variants = [
      ['UDP to UDP, one leg', { kind: 'fast', shape: 'leg' }],
      ['netio to UDP, one leg', { kind: 'fast', shape: 'leg', netio: { a: --nextId } }],
      ['UDP to netio, one leg', { kind: 'fast', shape: 'leg', netio: { b: --nextId } }],
      ['UDP to UDP, joined', { kind: 'fast', shape: 'joined' }],
      ['UDP to netio, joined', { kind: 'fast', shape: 'joined', netio: { b: --nextId } }],
      ['netio to netio, joined', { kind: 'fast', shape: 'joined', netio: { a: --nextId, b: --nextId } }],
      ['netio to netio, no relay', { kind: 'none', shape: 'joined', netio: { a: --nextId, b: --nextId } }],
    ] as const satisfies readonly (readonly [string, BedSetup])[]
    const beds = []
    for (const [, setup] of variants) beds.push(await Bed.open(setup, { segmenting: false }))
    const found = await inTurns(beds, (bed) => bed.throughput(length))
    for (const [index, [name]] of variants.entries()) {
      const figures = found[index] as Figures
      rows.push([`${name}, ${length} B`, kpps(figures), `${ratio(figures, found[0])} UDP, ${cost(figures)}`])
    }
  }
  clean()
  return rows
}

/** The processes of the beds were killed, and left their files. */
function clean(): void {
  for (let id = nextId; id < highestId; id++) {
    for (const name of [id, id + 512]) {
      for (const suffix of ['', '.lck']) rmSync(`${netioDirectory()}/${name}${suffix}`, { force: true })
    }
  }
}
