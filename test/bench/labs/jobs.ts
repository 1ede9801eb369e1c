import { performance } from 'node:perf_hooks'
import { findProgram } from '../../../runtime/node/os/system/find-program.ts'
import { at, median, ms, target } from '../medians.ts'
import { type Service, startService } from '../service.ts'
import type { Row } from '../table.ts'

const pcs = 100
const rounds = 7
const wantedMs = 400
const labsAtOnce = 20
const pcsALab = 5
/** How long a request of others may take while nodes are started. */
const wantedAnswerMs = 250

/** Jobs that start nodes: many that cost nothing, and many labs of programs at once. */
export async function jobs(): Promise<Row[]> {
  return [await embedded(), ...(findProgram('vpcs') === undefined ? [] : await crowd())]
}

async function embedded(): Promise<Row> {
  const service = await startService('--pc-engine', 'embedded')
  try {
    const lab = await labOf(service, 'bench', pcs)
    const times: number[] = []
    for (let round = -1; round < rounds; round++) {
      const began = performance.now()
      await service.call('POST', `${lab}/nodes/start`)
      if (round >= 0) times.push(performance.now() - began)
      await service.call('POST', `${lab}/nodes/stop`)
    }
    const time = median(times)
    return [`${pcs} embedded pcs, one job`, `${ms(time)} p50`, target(time < wantedMs, ms(wantedMs))]
  } finally {
    await service.close()
  }
}

/** Answers of the service meanwhile are what tells whether the host is overloaded. */
async function crowd(): Promise<Row[]> {
  const service = await startService('--pc-engine', 'vpcs')
  try {
    const labs = await all(labsAtOnce, (index) => labOf(service, `bench ${index}`, pcsALab))
    const answers: number[] = []
    let isOver = false
    const began = performance.now()
    const starts = Promise.all(labs.map((lab) => service.call('POST', `${lab}/nodes/start`))).finally(() => {
      isOver = true
    })
    while (!isOver) {
      const asked = performance.now()
      await service.call('GET', '/v2/compute/version')
      answers.push(performance.now() - asked)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await starts
    const slow = at(answers, 0.99)
    const time = `${((performance.now() - began) / 1000).toFixed(1)} s`
    const judged = target(slow < wantedAnswerMs, ms(wantedAnswerMs))
    return [[`${labsAtOnce} labs of ${pcsALab} VPCS pcs`, time, `answers meanwhile p99 ${ms(slow)}, ${judged}`]]
  } finally {
    await service.close()
  }
}

async function labOf(service: Service, name: string, count: number): Promise<string> {
  const { project_id } = (await service.call('POST', '/v2/projects', { name })) as { project_id: string }
  const lab = `/v2/projects/${project_id}`
  for (let index = 0; index < count; index++)
    await service.call('POST', `${lab}/nodes`, { name: `PC${index + 1}`, node_type: 'pc' })
  return lab
}

const all = <R>(count: number, make: (index: number) => Promise<R>): Promise<R[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)))
