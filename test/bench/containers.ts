import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { writeBusyboxImage } from '../support/container-image.ts'
import { processesWith } from '../support/processes.ts'
import { median, ms, target } from './medians.ts'
import { type Service, startService, startServiceWith } from './service.ts'
import type { Row } from './table.ts'

const run = promisify(execFile)
const streams = join(import.meta.dirname, 'labs/streams.py')
const [many, rounds, seconds, turns] = [50, 9, 3, 5]
const [port, server] = [5201, '10.77.0.2']
const [near, far] = ['pbveth-a', 'pbveth-b']
const ip = (args: string) => run('ip', args.split(' '))

/** Starts and stops of containers, what each takes of memory, and TCP between two of them beside a pair of veth devices. As root. */
export async function containers(): Promise<Row[]> {
  const service = await startService()
  // The same without patch cables.
  const relaying = await startServiceWith({ PATCHBAY_CABLES: 'off' })
  try {
    return [...(await times(service, await projectOf(service))), ...(await stream(service, relaying))]
  } finally {
    await service.close()
    await relaying.close()
  }
}

async function projectOf(service: Service): Promise<string> {
  await writeBusyboxImage(join(service.data, 'images/container/busybox.tar'))
  const body = { name: 'containers' }
  const { project_id } = (await service.call('POST', '/v2/compute/projects', body)) as { project_id: string }
  return `/v2/compute/projects/${project_id}/container/nodes`
}

async function create(service: Service, nodes: string, name: string, exec = ''): Promise<string> {
  const { node_id } = (await service.call('POST', nodes, { name, image: 'busybox.tar', exec })) as { node_id: string }
  return `${nodes}/${node_id}`
}

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work()
  return performance.now() - began
}

async function times(service: Service, nodes: string): Promise<Row[]> {
  const one = await create(service, nodes, 'one')
  const starts: number[] = []
  // The first one unpacks the image.
  for (let round = 0; round <= rounds; round++) {
    starts.push(await timed(() => service.call('POST', `${one}/start`)))
    await service.call('POST', `${one}/stop`)
  }
  const all = await Promise.all(Array.from({ length: many }, (_, index) => create(service, nodes, `c${index}`)))
  const each = (action: string) => timed(() => Promise.all(all.map((it) => service.call('POST', `${it}/${action}`))))
  const together = await each('start')
  const memory = (await holderMemoryMb()) / many
  const stopped = await each('stop')
  const start = median(starts.slice(1))
  return [
    ['start of a container, to running', ms(start), target(start <= 80, '80 ms')],
    [`start of ${many} at once`, ms(together), target(together <= 5000, '5 s')],
    [`stop of ${many} at once`, ms(stopped), target(stopped <= 1000, '1 s')],
    ['idle memory of a node beside its processes', `${memory.toFixed(1)} MB`, target(memory <= 2.5, '2.5 MB')],
  ]
}

/** Proportional memory of all holders, MB. */
async function holderMemoryMb(): Promise<number> {
  const sizes = processesWith('patchbay: holder of').map(async ({ pid }) => {
    const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')
    return Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0)
  })
  return (await Promise.all(sizes)).reduce((sum, kb) => sum + kb, 0) / 1024
}

/** Two containers on one link, started; the commands that enter their network namespaces. */
async function pairOf(service: Service): Promise<string[][]> {
  const nodes = await projectOf(service)
  const ends = await Promise.all(
    [1, 2].map((number) => create(service, nodes, `end${number}`, `ip addr add 10.77.0.${number}/24 dev eth0`)),
  )
  const [a = '', b = ''] = ends
  const udp = async () =>
    ((await service.call('POST', `${nodes.replace('/container/nodes', '')}/ports/udp`, {})) as { udp_port: number })
      .udp_port
  const [one, other] = [await udp(), await udp()]
  const nio = (lport: number, rport: number) => ({ type: 'nio_udp', lport, rhost: '127.0.0.1', rport })
  await service.call('POST', `${a}/adapters/0/ports/0/nio`, nio(one, other))
  await service.call('POST', `${b}/adapters/0/ports/0/nio`, nio(other, one))
  for (const end of ends) await service.call('POST', `${end}/start`)
  return ends.map((path) => {
    const holders = processesWith('patchbay: holder of').filter(({ args }) =>
      args.includes(path.split('/').at(-1) ?? ''),
    )
    // The last one has the namespaces.
    return ['nsenter', `--net=/proc/${holders.at(-1)?.pid}/ns/net`]
  })
}

/** One TCP stream by a patch cable, over the relay, and over a pair of veth devices, in turns. */
async function stream(cabled: Service, relaying: Service): Promise<Row[]> {
  const [cable, relay] = [await pairOf(cabled), await pairOf(relaying)]
  await ip(`netns add ${near}`)
  await ip(`netns add ${far}`)
  const found: Record<'cable' | 'relay' | 'veth', number[]> = { cable: [], relay: [], veth: [] }
  const sinks: ChildProcess[] = []
  try {
    await ip(`link add pbveth netns ${near} type veth peer name pbveth netns ${far}`)
    for (const [name, host] of [[near, 1] as const, [far, 2] as const]) {
      await ip(`-n ${name} addr add 10.77.0.${host}/24 dev pbveth`)
      await ip(`-n ${name} link set pbveth up`)
    }
    const ways = { cable, relay, veth: [near, far].map((name) => ['ip', 'netns', 'exec', name]) }
    for (const [, to = []] of Object.values(ways)) {
      const args = [...to.slice(1), 'python3', streams, 'sink', server, String(port)]
      const sink = spawn(to[0] ?? '', args, { stdio: ['ignore', 'pipe', 'inherit'] })
      sinks.push(sink)
      await once(sink.stdout, 'data')
    }
    for (let turn = 0; turn < turns; turn++)
      for (const [name, [from = []]] of Object.entries(ways)) {
        const client = [...from.slice(1), 'python3', streams, 'up', server, String(port), String(seconds)]
        found[name as 'relay'].push(Number((await run(from[0] ?? '', client)).stdout))
      }
  } finally {
    for (const sink of sinks) sink.kill('SIGKILL')
    for (const name of [near, far]) await ip(`netns del ${name}`).catch(() => {})
  }
  const veth = median(found.veth)
  const row = (name: string, mbits: number, least: number): Row => [
    `TCP, one stream between containers, ${name}`,
    `${mbits} Mbit/s`,
    `${(mbits / veth).toFixed(2)} x a veth pair (${veth} Mbit/s), ${target(mbits / veth >= least, `${least} x`)}`,
  ]
  return [row('by the kernel', median(found.cable), 0.9), row('over the relay', median(found.relay), 0.28)]
}
