import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { readLabFile } from '../../src/labfile/read.ts'
import { endsWithUs } from '../support/ends-with-us.ts'
import { leasePorts } from '../support/port-leases.ts'
import { type Effort, inOneGo } from './effort.ts'
import { at, median, ms, target } from './medians.ts'
import { Generator } from './packets/bed.ts'
import { programOf, type Service, startService } from './service.ts'
import type { Row } from './table.ts'
import { each, timed } from './times.ts'

/** Repetitions of each, in one go or in the turns of a comparison. */
const often = { turns: 15, cold: 5, plans: 7, captures: 3 }
const seldom: typeof often = { turns: 2, cold: 1, plans: 2, captures: 1 }
/** Bytes of a captured frame, and of the head of a record and of a file of pcap. */
const [frameBytes, recordBytes, headerBytes] = [512, 16, 24]
/** A capture that has not grown for so long is whole, ms. */
const quietMs = 300

/** What commands take, from the start of their process to its end; and what a capture by a command loses. */
export async function commandLine({ rounds }: Pick<Effort, 'rounds'> = inOneGo): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
  const service = await startService('--pc-engine', 'embedded')
  const bench = { home, service, counts: rounds < inOneGo.rounds ? seldom : often }
  try {
    await writeFile(join(home, 'twelve.lab.yaml'), twelveNodes)
    return [...(await upAndDown(bench)), ...(await plan(bench)), ...(await captures(bench))]
  } finally {
    await service.close()
    await rm(home, { recursive: true, force: true })
  }
}

interface Bench {
  readonly home: string
  readonly service: Service
  readonly counts: typeof often
}

const run = (home: string, argv: readonly string[], env: NodeJS.ProcessEnv) =>
  promisify(execFile)(process.execPath, [programOf(), ...argv], {
    cwd: home,
    env: { ...process.env, HOME: home, ...env },
  })

const pcs = Array.from({ length: 10 }, (_, index) => `PC${index + 1}`)
const twelveNodes = `lab: twelve
nodes:
${pcs.map((name, index) => `  ${name}: { kind: pc, config: { text: "ip 10.0.0.${index + 1}/24" } }`).join('\n')}
segments:
  west: { kind: switch, members: [${pcs.slice(0, 5)}, { end: east, trunk: true }] }
  east: { kind: switch, members: [${pcs.slice(5)}] }
`

async function upAndDown({ home, service, counts: { turns, cold } }: Bench): Promise<Row[]> {
  const there = { PATCHBAY_SERVER: service.url }
  const up = ['up', 'twelve.lab.yaml']
  const command = (...argv: string[]) => timed(() => run(home, argv, there))
  const [ups, agains]: [number[], number[]] = [[], []]
  for (let turn = 0; turn <= turns; turn++) {
    const first = await command(...up)
    const again = await command(...up)
    // The first turn is that of a service which has not made a lab yet.
    if (turn > 0) ups.push(first)
    if (turn > 0) agains.push(again)
    if (turn < turns) await command('down', 'twelve', '--delete', '--yes')
  }
  const lists = await each(Array(turns).fill('ls'), (word) => run(home, [word], there))
  const without: number[] = []
  for (let turn = 0; turn < cold; turn++) without.push(await upAlone(home))
  const row = (what: string, times: readonly number[], wanted: number): Row => [
    what,
    `${ms(median(times))} p50`,
    `p90 ${ms(at(times, 0.9))}, ${target(median(times) < wanted, ms(wanted))}`,
  ]
  return [
    row('patchbay ls', lists, 150),
    row('up of 12 nodes on a running service, to ready', ups, 500),
    row('up of 12 nodes without a service, and its end', without, 1500),
    row('up again', agains, 200),
  ]
}

/** `up` that starts the service; ms until it ends. */
async function upAlone(home: string): Promise<number> {
  const data = await mkdtemp(join(tmpdir(), 'patchbay-bench-'))
  endsWithUs(data)
  const env = { PATCHBAY_SERVER: '', PATCHBAY_DATA: data, PATCHBAY_PORT: '0', PATCHBAY_PC_ENGINE: 'embedded' }
  try {
    return await timed(() => run(home, ['up', 'twelve.lab.yaml'], env))
  } finally {
    await run(home, ['down', 'twelve', '--delete', '--yes'], env)
    await run(home, ['service', 'stop'], env)
    await rm(data, { recursive: true, force: true })
  }
}

/** 500 pcs at 500 switches in a ring with chords: 1,500 links. */
function thousandNodes(): string {
  const half = 500
  const each = (text: (index: number) => string) => Array.from({ length: half }, (_, index) => text(index)).join('\n')
  return `lab: thousand
nodes:
${each((it) => `  PC${it}: { kind: pc, at: [${it}, 0], config: { text: "ip 10.0.${it >> 8}.${it & 255}/16" } }`)}
segments:
${each((it) => `  S${it}: { kind: switch, at: [${it}, 80] }`)}
links:
${each((it) => `  - [PC${it}, S${it}:0]`)}
${each((it) => `  - [S${it}:1, S${(it + 1) % half}:2]`)}
${each((it) => `  - { ends: [S${it}:3, S${(it + 2) % half}:4], delay: 20ms }`)}
`
}

/** The comparison of a large lab with its file: the whole request, and what of it is the reading of the file. */
async function plan({ home, service, counts }: Bench): Promise<Row[]> {
  const document = thousandNodes()
  await writeFile(join(home, 'thousand.lab.yaml'), document)
  const making = await timed(() => run(home, ['apply', 'thousand.lab.yaml'], { PATCHBAY_SERVER: service.url }))
  const ask = async (body: object) => {
    const answer = await service.call('PUT', '/v2/projects/thousand/topology?dry_run=true', body)
    return (answer as { steps: unknown[] }).steps.length
  }
  const same = Array(counts.plans + 2).fill({ document })
  const changed = { document: document.replaceAll('20ms', '21ms') }
  if ((await ask({ document })) !== 0 || (await ask(changed)) !== 500)
    throw new Error('the plan is not that of the file')
  const plans = (await each(same, ask)).slice(2)
  const readings = (await each(same, () => readLabFile(document))).slice(2)
  const diffs = await each(same.slice(2), () =>
    run(home, ['diff', 'thousand.lab.yaml'], { PATCHBAY_SERVER: service.url }),
  )
  await service.call('DELETE', '/v2/projects/thousand')
  return [
    [
      'plan of 1,000 nodes and 1,500 links',
      `${ms(median(plans))} p50`,
      `of it ${ms(median(readings))} to read the file, ${target(median(plans) < 300, ms(300))}`,
    ],
    ['patchbay diff of them', `${ms(median(diffs))} p50`, `patchbay apply that makes them ${ms(making)}`],
  ]
}

/** Frames a second that a capture of a link has: into a file of the service, and by a command into a file of its own. */
async function captures({ home, service, counts }: Bench): Promise<Row[]> {
  const rows: Row[] = []
  for (const segmenting of [false, true]) {
    const [ofService, ofCommand]: [number[], number[]] = [[], []]
    const lease = leasePorts(4)
    const { first } = lease
    const [ownA, ownB, farA, farB] = [first, first + 1, first + 2, first + 3]
    const cloud = (lport: number, rport: number) =>
      `{ kind: cloud, ports: { 0: { type: udp, lport: ${lport}, rhost: 127.0.0.1, rport: ${rport} } } }`
    await writeFile(
      join(home, 'line.lab.yaml'),
      `lab: line
nodes: {}
segments:
  a: ${cloud(farA, ownA)}
  b: ${cloud(farB, ownB)}
links: [{ name: line, ends: [a, b] }]
`,
    )
    await run(home, ['up', 'line.lab.yaml'], { PATCHBAY_SERVER: service.url })
    const generator = await Generator.open({
      ...{
        ports: [[ownA, ownB]],
        targets: [[farA, farB]],
        sinks: [],
        sinkTargets: [],
        segmenting,
        netio: { isDirect: false },
      },
    })
    const send = () =>
      generator.throughput({ length: frameBytes, window: 64, ms: 1000, loss: 0, header: [], patience: 2 })
    for (let turn = 0; turn < counts.captures; turn++) {
      ofService.push(await serviceCapture(service, send))
      ofCommand.push(await commandCapture(home, service, send))
    }
    await generator.close()
    lease.release()
    await service.call('DELETE', '/v2/projects/line')
    const [theirs, ours] = [median(ofService), median(ofCommand)]
    const share = ours / theirs
    const wanted = segmenting ? target(ours >= 200_000, '200,000') : target(share >= 0.6, '0.6 x')
    rows.push([
      `capture by a command, ${segmenting ? 'joined' : 'single'} frames of ${frameBytes} bytes`,
      `${Math.round(ours / 1000)} kpps`,
      `${share.toFixed(2)} x a capture into a file of the service (${Math.round(theirs / 1000)} kpps), ${wanted}`,
    ])
  }
  return rows
}

type Send = () => Promise<{ frames: number; seconds: number }>

async function serviceCapture(service: Service, send: Send): Promise<number> {
  const [link] = (await service.call('GET', '/v2/projects/line/links')) as { link_id: string }[]
  const path = `/v2/projects/line/links/${link?.link_id}`
  const { capture_file_path } = (await service.call('POST', `${path}/start_capture`, {})) as {
    capture_file_path: string
  }
  const { seconds } = await send()
  const frames = await framesIn(capture_file_path)
  await service.call('POST', `${path}/stop_capture`)
  return frames / seconds
}

async function commandCapture(home: string, service: Service, send: Send): Promise<number> {
  const path = join(home, 'line.pcap')
  const child = spawn(process.execPath, [programOf(), 'capture', 'line/line', '-w', path], {
    env: { ...process.env, HOME: home, PATCHBAY_SERVER: service.url },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  // It says so when the capture runs.
  await once(child.stderr, 'data')
  const { seconds } = await send()
  const frames = await framesIn(path)
  child.kill('SIGINT')
  await once(child, 'exit')
  return frames / seconds
}

/** The frames in a file, when it grows no more. */
async function framesIn(path: string): Promise<number> {
  for (let before = -1; ; ) {
    const { size } = await stat(path)
    if (size === before) return Math.floor((size - headerBytes) / (recordBytes + frameBytes))
    before = size
    await sleep(quietMs)
  }
}
