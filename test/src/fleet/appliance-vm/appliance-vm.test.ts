import { expect, test } from 'vitest'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { newAppliance, running, vmOf } from '../../../support/appliance.ts'
import { faultOf, StandIn, unusedPort } from '../../../support/fleet.ts'

test('the VM is the compute vm when a service answers in it, and its progress is reported', async () => {
  const all = await newAppliance()
  const { appliance, engine, events, until, store } = all
  const started = appliance.update({ enable: true, vmname: 'a' })
  await until('vm', { last_error: 'The appliance VM "a" is starting: its address is not known yet' })
  engine.port = await unusedPort()
  const origin = `http://127.0.0.1:${engine.port}`
  await until('vm', { last_error: `The appliance VM "a" is starting: nothing answers yet at ${origin}` })
  const compute = await StandIn.start()
  engine.port = compute.port
  expect(await started).toMatchObject({ enable: true, vmname: 'a' })
  expect(appliance.state).toBe('on')
  expect(await vmOf(all)).toMatchObject({ connected: true, last_error: null, port: compute.port })
  expect(store.settings).toMatchObject({ enable: true, vmname: 'a' })
  await appliance.update({ enable: true })
  expect(engine.done).toEqual(['start a'])
  await appliance.update({ enable: false })
  expect([engine.done, appliance.state, await vmOf(all)]).toEqual([['start a', 'stop a'], 'off', undefined])
  expect(events.filter(({ type }) => type !== 'compute.updated').map(({ type }) => type)).toEqual([
    ...['compute.created', 'compute.deleted'],
  ])
})

test('another VM replaces the first; a change of when_exit does not restart the VM', async () => {
  const { appliance, engine } = await running()
  await appliance.update({ when_exit: 'suspend' })
  expect(engine.done).toEqual(['start a'])
  await appliance.update({ vmname: 'b' })
  await appliance.update({ ram: 4096, when_exit: 'keep' })
  expect(engine.done).toEqual(['start a', 'suspend a', 'start b', 'start b'])
  await appliance.update({ vmname: null })
  expect(appliance.state).toBe('off')
})

test('a start is cancelled when the VM is disabled, and the VM is ended', async () => {
  const all = await newAppliance()
  const { appliance, engine, until } = all
  const started = faultOf(appliance.update({ enable: true, vmname: 'a' }))
  await until('vm', { last_error: 'The appliance VM "a" is starting: its address is not known yet' })
  await appliance.update({ enable: false })
  expect(await started).toMatchObject({ status: 409, message: /changed meanwhile/ })
  expect([engine.done, appliance.state, await vmOf(all)]).toEqual([['start a', 'stop a'], 'off', undefined])
})

test('a hanging engine does not delay disabling the VM, and a VM that it starts late is ended', async () => {
  const all = await newAppliance()
  const { appliance, engine, until } = all
  let open = () => {}
  engine.gate = new Promise((resolve) => {
    open = resolve
  })
  const started = faultOf(appliance.update({ enable: true, vmname: 'a' }))
  await until('vm', { last_error: 'The appliance VM "a" is starting' })
  const ended = appliance.update({ enable: false })
  expect(await started).toMatchObject({ status: 409 })
  open()
  await ended
  expect([engine.done, engine.isOn]).toEqual([['start a', 'stop a'], false])
})

test('a failure is reported, the settings are saved, and another request tries again', async () => {
  const all = await newAppliance()
  const { appliance, engine, store } = all
  engine.fault = conflict('libvirt: no such thing')
  const message = 'The appliance VM "a" was not started: libvirt: no such thing'
  expect(await faultOf(appliance.update({ enable: true, vmname: 'a' }))).toMatchObject({ status: 409, message })
  expect([appliance.state, (await vmOf(all))?.last_error]).toEqual(['failed', message])
  expect(store.settings).toMatchObject({ enable: true, vmname: 'a' })
  expect(await faultOf(appliance.vms('libvirt'))).toMatchObject({ status: 409 })
  expect(await faultOf(appliance.ready())).toMatchObject({ status: 409, message })
  engine.fault = undefined
  engine.port = (await StandIn.start()).port
  await Promise.all([appliance.ready(), appliance.ready()])
  expect(appliance.state).toBe('on')
  expect(engine.done).toEqual(['start a', 'start a', 'start a'])
  engine.fault = conflict('libvirt: it went away')
  expect(await faultOf(appliance.update({ enable: false }))).toMatchObject({ status: 409, message: /was not stopped/ })
  // It is tried again, and is in nobody's way.
  expect(await faultOf(appliance.update({ enable: false }))).toMatchObject({ status: 409 })
  await appliance.update({ vmname: 'b' })
  expect([appliance.state, await vmOf(all), await appliance.vms('libvirt')]).toEqual(['off', undefined, []])
})

test('a request does not repeat a start at once that has just failed', async () => {
  const { appliance, engine } = await newAppliance({ againMs: 60_000 })
  engine.fault = conflict('libvirt: no')
  await faultOf(appliance.update({ enable: true, vmname: 'a' }))
  await faultOf(appliance.ready())
  expect(engine.done).toEqual(['start a'])
  await faultOf(appliance.update({ enable: true }))
  expect(engine.done).toEqual(['start a', 'start a'])
})

test('a VM in which nothing answers in time fails, and is ended when it is disabled', async () => {
  const { appliance, engine } = await newAppliance({ startMs: 100 })
  expect(await faultOf(appliance.update({ enable: true, vmname: 'a' }))).toMatchObject({
    ...{ status: 409, message: /no Patchbay answered in it within 0\.1 s/ },
  })
  await appliance.update({ enable: false })
  expect(engine.done).toEqual(['start a', 'stop a'])
})

test('a VM that ends while it starts, and one with another version, fail at once', async () => {
  const { appliance, engine, until } = await newAppliance()
  const started = faultOf(appliance.update({ enable: true, vmname: 'a' }))
  await until('vm', { last_error: 'The appliance VM "a" is starting: its address is not known yet' })
  engine.isOn = false
  expect(await started).toMatchObject({ status: 409, message: /it stopped before its service answered/ })
  const compute = await StandIn.start()
  compute.capabilities = (_, res) => void res.end('{"version":"9.0.0","node_types":[]}')
  engine.port = compute.port
  expect(await faultOf(appliance.update({ enable: true }))).toMatchObject({ status: 409, message: /it runs 9\.0\.0/ })
})

test('a VM that ends by itself is no longer the compute, and a request starts it again', async () => {
  const all = await running()
  const { appliance, engine, fleet } = all
  const gone = new Promise<void>((resolve) => {
    fleet.listen(({ type }) => type === 'compute.deleted' && resolve())
  })
  engine.isOn = false
  for (const changed of engine.changed) changed()
  await gone
  expect([appliance.state, engine.changed.size]).toEqual(['off', 0])
  await appliance.ready()
  expect([appliance.state, engine.done]).toEqual(['on', ['start a', 'start a']])
})

test('the address of a VM may change while it runs', async () => {
  const { engine, until } = await running()
  const other = await StandIn.start()
  engine.port = other.port
  for (const changed of engine.changed) changed()
  await until('vm', { port: other.port, connected: true })
})

test('settings that cannot be saved change nothing', async () => {
  const { appliance, engine, store } = await running()
  store.fault = new Error('the disk is full')
  await expect(appliance.update({ enable: false })).rejects.toThrow('the disk is full')
  expect([appliance.settings.enable, appliance.state, engine.done]).toEqual([true, 'on', ['start a']])
})

test('an enabled VM is started with the service', async () => {
  const { store, appliance } = await running()
  await appliance.update({ when_exit: 'keep', user: 'anna', password: 'geheim' })
  await appliance.close()
  const again = await newAppliance({}, store)
  expect(again.appliance.settings).toMatchObject({ enable: true, vmname: 'a', user: 'anna' })
  expect(JSON.stringify(again.appliance.settings)).not.toContain('geheim')
  again.engine.port = (await StandIn.start()).port
  await again.appliance.ready()
  expect(again.appliance.state).toBe('on')
})

test('changes and the end of the compute of a VM are followed', async () => {
  const [first, second] = [await StandIn.start(), await StandIn.start()]
  const { appliance, fleet, until } = await newAppliance()
  await fleet.create(first.input({ name: 'lab' }))
  await appliance.update({ enable: true, engine: 'remote', vmname: 'lab' })
  await until('vm', { connected: true, port: first.port })
  await fleet.update('one', { port: second.port })
  await until('vm', { connected: true, port: second.port })
  const gone = new Promise<void>((resolve) => {
    fleet.listen((event) => {
      if (event.type === 'compute.deleted' && event.compute.compute_id === 'vm') resolve()
    })
  })
  await fleet.remove('one')
  await gone
  expect(await faultOf(appliance.ready())).toMatchObject({ status: 409, message: /There is no compute "lab"/ })
})
