import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { ms, target } from '../medians.ts'
import { Bed, cost, type Figures, inTurns, kpps } from '../packets/bed.ts'
import { startService } from '../service.ts'
import type { Row } from '../table.ts'

const shapes = [
  ['node to node', 'joined', undefined],
  ['through a switch', 'switched', 0.5],
  ['flooded to 8 ports', 'flooded', 0.15],
] as const
const unicast = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]
const broadcast = [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 0]

/** A switch beside a link between two nodes, in the same run; and links that are joined at once. */
export async function labs(): Promise<Row[]> {
  const rows: Row[] = []
  for (const segmenting of [true, false]) {
    for (const length of [64, 512, 1400]) {
      const beds = await Promise.all(shapes.map(([, shape]) => Bed.open({ kind: 'fast', shape }, { segmenting })))
      const found = await inTurns(beds, (bed, index) =>
        bed.throughput(length, { header: shapes[index]?.[1] === 'flooded' ? broadcast : unicast }),
      )
      const [base] = found
      for (const [index, [name, , wanted]] of shapes.entries()) {
        const figures = found[index] as Figures
        const share = figures.kpps / (base?.kpps ?? 1)
        const judged = wanted === undefined ? '' : `, ${target(share >= wanted, `${wanted} x`)}`
        const frames = segmenting ? 'joined frames' : 'single frames'
        rows.push([
          `${name}, ${length} B, ${frames}`,
          kpps(figures),
          `${share.toFixed(2)} x node to node, ${cost(figures)}${judged}`,
        ])
      }
    }
  }
  return [...rows, ...(await joinedAtOnce())]
}

/** Links between switches of 1000 ports, in one request. */
export async function joinedAtOnce(): Promise<Row[]> {
  const count = 1500
  const service = await startService()
  try {
    const { project_id } = (await service.call('POST', '/v2/compute/projects', { name: 'many' })) as {
      project_id: string
    }
    const project = `/v2/compute/projects/${project_id}`
    const ports_mapping = Array.from({ length: 1000 }, (_, port_number) => ({ port_number }))
    const boxes = (await Promise.all(
      ['A', 'B', 'C', 'D'].map((name) => service.call('POST', `${project}/switch/nodes`, { name, ports_mapping })),
    )) as { node_id: string }[]
    const end = (box: number, port_number: number) => ({
      ...{ node_type: 'switch', node_id: boxes[box]?.node_id, adapter_number: 0, port_number },
    })
    const links = Array.from({ length: count }, (_, index) => {
      const [first, port] = [2 * Math.floor(index / 1000), index % 1000]
      return { link_id: randomUUID(), nodes: [end(first, port), end(first + 1, port)] }
    })
    const timed = async () => {
      const began = performance.now()
      const joined = (await service.call('POST', `${project}/links`, { links })) as { error: unknown }[]
      if (joined.some(({ error }) => error !== null)) throw new Error(JSON.stringify(joined.find(({ error }) => error)))
      return performance.now() - began
    }
    const [first, again] = [await timed(), await timed()]
    return [[`${count} links joined at once`, ms(first), `again ${ms(again)}, ${target(first < 1000, '1 s')}`]]
  } finally {
    await service.close()
  }
}
