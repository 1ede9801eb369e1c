import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram } from '../../../runtime/node/os/system/find-program.ts'
import { median, target } from '../medians.ts'
import { startService } from '../service.ts'
import type { Row } from '../table.ts'

const run = promisify(execFile)
const streams = join(import.meta.dirname, 'streams.py')
const [seconds, turns] = [3, 3]
/** The least share of its component alone. */
const wanted = 0.7
const port = 5201
const server = '192.88.99.2'
const [near, far] = ['pbnat-guest', 'pbnat-server']
const direct = ['-netdev', 'hubport,hubid=0,id=a,netdev=user', '-netdev', 'hubport,hubid=0,id=b,netdev=tap']

const ip = (args: string) => run('ip', args.split(' '))

/**
 * TCP between a guest behind a TAP and a server beside this host: through a nat node, with the keeper's switch on the way, and through QEMU's
 * user network, which is the same library by itself, at the same TAP. In turns.
 */
export async function nat(): Promise<Row[]> {
  await makeServer()
  const sink = await start('ip', ['netns', 'exec', far, 'python3', streams, 'sink', server, String(port)])
  const found = { nat: { up: [], down: [] }, qemu: { up: [], down: [] } } as Record<string, Record<string, number[]>>
  try {
    for (let turn = 0; turn < turns; turn++) {
      for (const [name, open] of [['nat', openNat] as const, ['qemu', openQemu] as const]) {
        await ip(`netns add ${near}`)
        const close = await open()
        await makeGuest()
        for (const way of ['up', 'down']) {
          const client = ['netns', 'exec', near, 'python3', streams, way, server, String(port), String(seconds)]
          found[name]?.[way]?.push(Number((await run('ip', client)).stdout))
        }
        await close()
        await ip(`netns del ${near}`)
      }
    }
  } finally {
    sink.kill('SIGKILL')
    for (const name of [near, far]) await ip(`netns del ${name}`).catch(() => {})
  }
  return ['up', 'down'].map((way) => {
    const [ours, theirs] = [median(found.nat?.[way] ?? []), median(found.qemu?.[way] ?? [])]
    const what = `nat, one TCP stream ${way === 'up' ? 'of the guest' : 'to the guest'}`
    const share = ours / theirs
    const beside = `${share.toFixed(2)} x libslirp in QEMU alone (${theirs} Mbit/s)`
    return [what, `${ours} Mbit/s`, `${beside}, ${target(share >= wanted, `${wanted} x`)}`]
  })
}

async function makeServer(): Promise<void> {
  await ip(`netns add ${far}`)
  await ip(`link add pbnat0 type veth peer name pbnat1 netns ${far}`)
  await ip('addr add 192.88.99.1/24 dev pbnat0')
  await ip('link set pbnat0 up')
  await ip(`-n ${far} addr add ${server}/24 dev pbnat1`)
  await ip(`-n ${far} link set pbnat1 up`)
}

async function makeGuest(): Promise<void> {
  await ip(`link set pbnat2 netns ${near}`)
  await ip(`-n ${near} addr add 192.168.122.10/24 dev pbnat2`)
  await ip(`-n ${near} link set pbnat2 up`)
  await ip(`-n ${near} route add default via 192.168.122.1`)
}

async function openNat(): Promise<() => Promise<void>> {
  const service = await startService()
  const { project_id } = (await service.call('POST', '/v2/compute/projects', { name: 'nat' })) as { project_id: string }
  const nodes = `/v2/compute/projects/${project_id}/nat/nodes`
  const { node_id } = (await service.call('POST', nodes, { name: 'inet' })) as { node_id: string }
  await service.call('POST', `${nodes}/${node_id}/adapters/0/ports/0/nio`, { type: 'nio_tap', tap_device: 'pbnat2' })
  await service.call('POST', `${nodes}/${node_id}/start`)
  return () => service.close()
}

async function openQemu(): Promise<() => Promise<void>> {
  const qemu = findProgram('qemu-system-x86_64')
  if (qemu === undefined) throw new Error('qemu-system-x86_64 is not installed')
  const user = 'user,id=user,net=192.168.122.0/24,host=192.168.122.1,dns=192.168.122.2'
  const tap = 'tap,id=tap,ifname=pbnat2,script=no,downscript=no'
  const child = spawn(
    qemu,
    ['-machine', 'none', '-nodefaults', '-display', 'none', '-netdev', user, '-netdev', tap, ...direct],
    { stdio: 'ignore' },
  )
  while ((await ip('link show pbnat2').catch(() => undefined)) === undefined && child.exitCode === null);
  return async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}

async function start(command: string, args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  if (child.stdout !== null) await once(child.stdout, 'data')
  return child
}
