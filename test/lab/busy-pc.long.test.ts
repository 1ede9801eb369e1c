import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { attach, createLab, createPc, openConsole, reserve, start, status } from '../support/lab.ts'
import { TestService } from '../support/service.ts'
import { TcpClient } from '../support/tcp-client.ts'

const settings = { 'pc.engine': 'embedded' }

/** A configuration of about 1 MB, of lines that a person may have. */
const lines = 25_000
const pasted = `${Array.from({ length: lines }, (_, line) => `echo line ${String(line).padStart(6, '0')} of what was pasted`).join('\r')}\r`

test('a pc into which 1 MB is pasted does not delay others, and the end of a pc ends no other', async () => {
  const service = await TestService.start(settings)
  const busy = await createLab(service)
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'other' })
  const other = `/v2/compute/projects/${project_id}`
  const others = await Promise.all(Array.from({ length: 20 }, (_, index) => createPc(service, other, index + 1)))
  const [first = '', second = ''] = others
  const [a, b] = [await reserve(service, other), await reserve(service, other)]
  await attach(service, first, a, b)
  await attach(service, second, b, a)
  await start(service, busy.pc1, busy.pc2, ...others)
  const neighbour = await openConsole(service, first)
  const { console } = await service.call<{ console: number }>('GET', busy.pc1)
  const client = await TcpClient.connect(console)
  await client.shows('PC1> ')
  const memoryBefore = await memoryMb(service.data)

  client.socket.write(pasted)
  neighbour.type('ping 10.0.0.2 -c 20 -i 20\r')
  await service.call('POST', `${busy.pc2}/stop`)
  expect(await status(service, busy.pc2)).toBe('stopped')
  const pings = await neighbour.expect('icmp_seq=20 ')
  expect(pings).not.toContain('timeout')
  expect(await Promise.all(others.map((node) => status(service, node)))).toEqual(others.map(() => 'started'))

  const ran = () =>
    [...client.received.toString('latin1').matchAll(/(?<!echo )line (\d{6}) of what was pasted\r/g)].map(([, line]) =>
      Number(line),
    )
  // A look at the end alone: a client that searches all of its megabytes again and again reads too slowly, and is disconnected. The last
  // line may have been typed ahead, or be echoed at its prompt.
  const last = new RegExp(`(?<!echo )line ${String(lines - 1).padStart(6, '0')} of what was pasted\\r`)
  await expect.poll(() => client.received.subarray(-200).toString('latin1'), { interval: 200 }).toMatch(last)
  expect(ran()).toEqual(Array.from({ length: lines }, (_, line) => line))
  // The paste itself, what it was turned into, and what has not been collected yet.
  expect((await memoryMb(service.data)) - memoryBefore).toBeLessThan(80)
  expect(await status(service, busy.pc1)).toBe('started')
})

test('input beyond the limit is refused with a message, and Ctrl-C still works', async () => {
  const service = await TestService.start({ ...settings })
  const { pc1 } = await createLab(service)
  await start(service, pc1)
  const console = await openConsole(service, pc1)
  console.type('sleep 3600\r')
  for (let part = 0; part < 6; part++) console.type(pasted)
  await console.expect('Too much is typed ahead: lines are refused until the command has ended')
  console.type('\x03')
  await console.expect('PC1> ')
  console.type('echo heard\r')
  await console.expect('\nheard\r')
})

test('a pc that is stopped while it is being pasted into ends, and can be started again', async () => {
  const service = await TestService.start({ ...settings })
  const { pc1, pc2 } = await createLab(service)
  await start(service, pc1, pc2)
  const console = await openConsole(service, pc1)
  console.type(pasted)
  await console.expect('of what was pasted')
  await service.call('POST', `${pc1}/stop`)
  await console.closed()
  expect(await status(service, pc2)).toBe('started')
  await start(service, pc1)
  const again = await openConsole(service, pc1)
  again.type('ping 10.0.0.2 -c 1\r')
  await again.expect('icmp_seq=1 ttl=64')
})

test('a script that loads itself for ever does not delay other pcs, and can be stopped', async () => {
  const service = await TestService.start({ ...settings })
  const { project, pc2 } = await createLab(service)
  const { node_id } = await service.call<{ node_id: string }>('POST', `${project}/pc/nodes`, {
    name: 'LOOP',
    startup_script: 'set pcname PC9\nload startup.vpc\n'.repeat(50),
  })
  const loop = `${project}/pc/nodes/${node_id}`
  await start(service, loop, pc2)
  const console = await openConsole(service, pc2)
  console.type('echo quick\r')
  await console.expect('\nquick\r')
  await service.call('POST', `${loop}/stop`)
  expect(await status(service, pc2)).toBe('started')
})

test('a project has room for more than 255 pcs, each with a MAC address of its own', async () => {
  const service = await TestService.start({ ...settings })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'many' })
  const nodes = `/v2/compute/projects/${project_id}/pc/nodes`
  const wanted = { name: 'PC', console_type: 'none' }
  const made: { mac_address: string; node_id: string }[] = []
  for (let round = 0; round < 20; round++) {
    const some = Array.from({ length: 30 }, () => service.call<(typeof made)[0]>('POST', nodes, wanted))
    made.push(...(await Promise.all(some)))
  }
  expect(new Set(made.map(({ mac_address }) => mac_address)).size).toBe(600)
  expect(made.map(({ mac_address }) => mac_address).sort()).toContain('00:50:79:66:6a:58')
  const last = made.find(({ mac_address }) => mac_address === '00:50:79:66:6a:58')
  await service.call('POST', `${nodes}/${last?.node_id}/start`)
  expect(await status(service, `${nodes}/${last?.node_id}`)).toBe('started')
  // Ids that were given before are what they were.
  expect(made.map(({ mac_address }) => mac_address)).toEqual(
    expect.arrayContaining(['00:50:79:66:68:00', '00:50:79:66:68:fe', '00:50:79:66:69:00']),
  )
})

/** Resident memory of the keeper of a data directory and of what it has started, MB. */
async function memoryMb(data: string): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const all = await Promise.all(
    pids.map(async (pid) => {
      const [command, stat, memory] = await Promise.all(
        ['cmdline', 'stat', 'statm'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
      )
      return { pid, command, parent: /\) \S (\d+)/.exec(stat ?? '')?.[1], pages: Number(memory?.split(' ')[1]) }
    }),
  )
  const keeper = all.find(({ command }) => command?.includes(`keeper.js\0${data}`))
  if (keeper === undefined) throw new Error('no keeper')
  const ours = all.filter(({ pid, parent }) => pid === keeper.pid || parent === keeper.pid)
  return ours.reduce((sum, { pages }) => sum + pages * 4096, 0) / 2 ** 20
}
