import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, test, vi } from 'vitest'
import { attach, createLab, createPc, openConsole, reserve, start } from '../support/lab.ts'
import { hangMs } from '../support/limits.ts'
import { requireLibpcap, requireProgram } from '../support/require.ts'
import { quickest } from '../support/rounds.ts'
import { TestService } from '../support/service.ts'

const vpcs = requireProgram('vpcs')
const libpcap = requireLibpcap()
const engines = ['embedded', 'vpcs'] as const

test.for(engines)('filters of a link take effect on running %s pcs', async (engine, { skip }) => {
  skip(engine === 'vpcs' && vpcs.skip, vpcs.missing)
  const service = await TestService.start({ 'pc.engine': engine })
  const lab = await createLab(service)
  await start(service, lab.pc1, lab.pc2)
  const port = `${lab.pc1}/adapters/0/ports/0/nio`
  const nio = await service.call('GET', port)
  const { type, lport, rhost, rport } = nio
  const change = (what: object) => service.call('PUT', port, { type, lport, rhost, rport, ...what })
  const dropped = async () => (await service.call<{ counters: { dropped: object } }>('GET', port)).counters.dropped
  const console = await openConsole(service, lab.pc1)

  await change({ filters: { delay: [60] } })
  /** The shortest way there and back of two pings, ms. */
  const ping = async () => {
    console.type('ping 10.0.0.2 -c 2 -i 300\r')
    const shown = (await console.expect(/icmp_seq=2 ttl=64 time=.* ms/)).matchAll(/ttl=64 time=([\d.]+) ms/g)
    const times = [...shown].map(([, time]) => Number(time))
    await console.expect('PC1> ')
    // 60 ms each way.
    expect(Math.min(...times)).toBeGreaterThanOrEqual(120)
    return Math.min(...times)
  }
  expect(await quickest(140, ping)).toBeLessThan(140)

  if (!libpcap.skip) {
    await change({ filters: { bpf: ['icmp'] } })
    console.type('ping 10.0.0.2 -c 1 -w 300\r')
    await console.expect(/timeout/)
    expect(await dropped()).toMatchObject({ bpf: 1 })
    await console.expect('PC1> ')
  }

  await change({ filters: {}, suspend: true })
  console.type('ping 10.0.0.2 -c 1 -w 300\r')
  await console.expect(/timeout|not reachable/)
  expect(await service.call('GET', port)).toMatchObject({ link: 'suspended', suspend: true })

  await change({ suspend: false })
  await console.expect('PC1> ')
  console.type('ping 10.0.0.2 -c 1\r')
  await console.expect('icmp_seq=1 ttl=64')
  await vi.waitFor(async () => expect(await service.call('GET', port)).toMatchObject({ link: 'ok' }), {
    timeout: hangMs,
  })
})

test('a link whose port another program took during a restart of the service says so, and works when the port is free', async () => {
  const service = await TestService.start({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'lab' })
  const project = `/v2/compute/projects/${project_id}`
  const pc = await createPc(service, project, 1)
  const [a, b] = [await reserve(service, project), await reserve(service, project)]
  await attach(service, pc, a, b)
  await service.end()
  const other = createSocket('udp4').bind(a, '127.0.0.1')
  await once(other, 'listening')
  await service.restart()
  const port = `${pc}/adapters/0/ports/0/nio`
  const state = () => service.call<{ link: string; lport: number }>('GET', port)
  await vi.waitFor(async () => expect(await state()).toMatchObject({ link: 'port_taken', lport: a }), {
    timeout: hangMs,
  })
  await new Promise<void>((resolve) => other.close(resolve))
  await vi.waitFor(async () => expect((await state()).link).not.toBe('port_taken'), { timeout: hangMs })
})
