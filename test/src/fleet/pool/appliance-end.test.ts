import { expect, test } from 'vitest'
import type { HostAgent } from '../../../../src/host-agent.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { textOf } from '../../../support/answer.ts'
import { newAppliance, running, vmOf } from '../../../support/appliance.ts'
import { faultOf, json, StandIn } from '../../../support/fleet.ts'
import { hangMs } from '../../../support/limits.ts'

test('a VM that could not be ended is ended by the next request', async () => {
  const all = await running()
  const { appliance, engine } = all
  engine.fault = conflict('libvirt: it went away')
  await faultOf(appliance.update({ enable: false }))
  engine.fault = undefined
  await appliance.update({ enable: false })
  expect([engine.done, engine.isOn, await vmOf(all)]).toEqual([['start a', 'stop a', 'stop a'], false, undefined])
})

test('a VM that is disabled while another one is being ended is not started', async () => {
  const { appliance, engine, until } = await running()
  let open = () => {}
  engine.gate = new Promise((resolve) => {
    open = resolve
  })
  const changed = faultOf(appliance.update({ vmname: 'b' }))
  await until('vm', { last_error: 'The appliance VM "a" is being stopped' })
  const disabled = appliance.update({ enable: false })
  // It is saved before the VM has ended.
  while (appliance.settings.enable) await Promise.resolve()
  open()
  expect(await changed).toMatchObject({ status: 409, message: /changed meanwhile/ })
  await disabled
  expect([engine.done, appliance.state]).toEqual([['start a', 'stop a'], 'off'])
})

test('a paused VM is ended, too', async () => {
  const { appliance, engine, fleet } = await running()
  const gone = new Promise<void>((resolve) => {
    fleet.listen(({ type }) => type === 'compute.deleted' && resolve())
  })
  engine.isOn = false
  for (const changed of engine.changed) changed()
  await gone
  await appliance.close()
  expect(engine.done).toEqual(['start a', 'stop a'])
})

test('the end of the service waits for a guest for a limited time', async () => {
  const { appliance, engine, until } = await running({ endMs: 600_000, exitMs: 50 })
  engine.obeys = false
  const ended = faultOf(appliance.update({ enable: false }))
  await until('vm', { last_error: 'The appliance VM "a" is being stopped' })
  await appliance.close()
  expect(await ended).toMatchObject({ status: 409, message: 'The service is shutting down' })
  expect(engine.done).toEqual(['start a', 'stop a', 'hurry a'])
})

test.for([
  ['255.255.255.0', '127.0.0.1', '255.0.0.0', 'warned'],
  ['255.0.0.0', '127.0.0.1', '255.0.0.0', 'silent'],
  ['255.255.255.0', '10.1.2.3', '255.0.0.0', 'silent'],
  ['', '127.0.0.1', '255.0.0.0', 'silent'],
] as const)('a VM with netmask "%s" to a service at %s, %s: %s', async ([theirs, address, ours, outcome]) => {
  const compute = await StandIn.start()
  const asked = new Promise<void>((resolve) => {
    compute.answer = (_, res) => {
      json(res, 200, [
        { ip_address: '10.0.0.1', netmask: '' },
        { ip_address: '127.0.0.1', netmask: theirs },
      ])
      resolve()
    }
  })
  const { appliance, engine, events, fleet } = await newAppliance({ checkMs: 1 }, undefined, {
    ...{ name: 'this', user: null, address: () => ({ protocol: 'http', host: '127.0.0.1', port: 1 }) },
    agent: {
      host: { capabilities: () => Promise.reject(new Error('none')), load: () => Promise.reject(new Error('none')) },
    } as Partial<HostAgent> as HostAgent,
    fetch: async () => Response.json([{ ip_address: address, netmask: ours }]),
  })
  engine.port = compute.port
  await appliance.update({ enable: true, vmname: 'a' })
  await asked
  // What was answered before another question is known after it.
  await fleet.connect('vm')
  const signal = AbortSignal.timeout(hangMs)
  await textOf(await fleet.send('vm', { method: 'GET', path: '/', headers: {}, body: null, signal }))
  const warnings = () => events.flatMap((event) => ('message' in event ? [event.message] : []))
  if (outcome === 'warned')
    await expect.poll(warnings).toEqual([expect.stringMatching(/"a" \(127\.0\.0\.1, netmask 255/)])
  await appliance.update({ enable: false })
  if (outcome === 'silent') expect(warnings()).toEqual([])
})

test.for(['stop', 'suspend', 'keep'] as const)('at the end of the service: %s', async (when_exit) => {
  const { appliance, engine } = await running()
  await appliance.update({ when_exit })
  await appliance.close()
  expect(engine.done).toEqual(when_exit === 'keep' ? ['start a'] : ['start a', `${when_exit} a`])
  expect(await faultOf(appliance.update({ ram: 100 }))).toMatchObject({ status: 409 })
  await appliance.close()
})

test('the end of the service cancels a start', async () => {
  const { appliance, engine, until } = await newAppliance()
  const started = faultOf(appliance.update({ enable: true, vmname: 'a' }))
  await until('vm', { last_error: 'The appliance VM "a" is starting: its address is not known yet' })
  await appliance.close()
  expect(await started).toMatchObject({ status: 409, message: /The service is shutting down/ })
  expect(engine.done).toEqual(['start a', 'stop a'])
})
