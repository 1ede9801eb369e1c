import { expect, onTestFinished, test } from 'vitest'
import { conflict } from '../../../src/errors.ts'
import type { ApplianceEngine, Place } from '../../../src/fleet/appliance-engine.ts'
import type { ApplianceBounds } from '../../../src/fleet/appliance-start.ts'
import { ApplianceVm } from '../../../src/fleet/appliance-vm.ts'
import type { LocalHost } from '../../../src/fleet/local-compute.ts'
import { RemoteEngine } from '../../../src/fleet/remote-engine.ts'
import type { Compute } from '../../../src/model/compute.ts'
import { faultOf, json, openFleet, StandIn, unusedPort } from '../../support/fleet.ts'
import { MemoryAppliance } from '../../support/memory-appliance.ts'

/** An engine that does as the test says, and writes down what was wanted of it. */
class TestEngine implements ApplianceEngine {
  readonly shown = {
    ...{ engine_id: 'libvirt', name: 'test', description: '' },
    ...{ support_when_exit: true, support_headless: false, support_ram: true },
  }
  readonly done: string[] = []
  readonly changed = new Set<() => void>()
  isOn = false
  obeys = true
  port: number | undefined
  fault: Error | undefined
  /** What a start, and an end, waits for. */
  gate: Promise<void> = Promise.resolve()

  async vms(): Promise<string[]> {
    if (this.fault !== undefined) throw this.fault
    return ['a', 'b']
  }

  async start({ vmname }: { vmname: string | null }): Promise<void> {
    this.done.push(`start ${vmname}`)
    await this.gate
    if (this.fault !== undefined) throw this.fault
    this.isOn = true
  }

  async places(): Promise<Place[]> {
    if (this.port === undefined) return []
    return [{ protocol: 'http', host: '127.0.0.1', port: this.port, user: null, password: null }]
  }

  async isRunning(): Promise<boolean> {
    return this.isOn
  }

  async end({ vmname }: { vmname: string | null }, how: string, hurry: AbortSignal): Promise<void> {
    this.done.push(`${how} ${vmname}`)
    await this.gate
    if (!this.obeys) {
      await new Promise((resolve) => hurry.addEventListener('abort', resolve))
      this.done.push(`hurry ${vmname}`)
    }
    if (this.fault !== undefined) throw this.fault
    this.isOn = false
  }

  watch(_: unknown, changed: () => void): () => void {
    this.changed.add(changed)
    return () => void this.changed.delete(changed)
  }
}

const soon: ApplianceBounds = {
  startMs: 15_000,
  probeMs: 1000,
  pauseMs: 5,
  endMs: 1000,
  exitMs: 1000,
  againMs: 0,
  checkMs: 60_000,
}

async function newAppliance(bounds: Partial<ApplianceBounds> = {}, store = new MemoryAppliance(), local?: LocalHost) {
  const open = await openFleet(local && { local })
  const engine = new TestEngine()
  const engines = { libvirt: engine, remote: new RemoteEngine(open.fleet) }
  const appliance = await ApplianceVm.open({ fleet: open.fleet, engines, store, bounds: { ...soon, ...bounds } })
  onTestFinished(() => appliance.close())
  /** Resolves when the compute vm is there, and shown so. */
  const until = async (id: string, shown: Partial<Compute>) => {
    for (;;) {
      const next = new Promise<void>((resolve) => {
        const stop = open.fleet.listen(() => {
          stop()
          resolve()
        })
      })
      if ((await open.fleet.get(id).catch(() => undefined)) !== undefined) return open.until(id, shown)
      await next
    }
  }
  return { ...open, until, engine, appliance, store }
}

/** One whose VM answers. */
async function running(bounds: Partial<ApplianceBounds> = {}) {
  const compute = await StandIn.start()
  const all = await newAppliance(bounds)
  all.engine.port = compute.port
  await all.appliance.update({ enable: true, vmname: 'a' })
  return { ...all, compute }
}

const vmOf = ({ fleet }: Awaited<ReturnType<typeof newAppliance>>) => fleet.get('vm').catch(() => undefined)

test('the VM is the compute vm from when a service answers in it, and its progress is told', async () => {
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

test('another VM takes the place of the first; how it ends is no change of the VM', async () => {
  const { appliance, engine } = await running()
  await appliance.update({ when_exit: 'suspend' })
  expect(engine.done).toEqual(['start a'])
  await appliance.update({ vmname: 'b' })
  await appliance.update({ ram: 4096, when_exit: 'keep' })
  expect(engine.done).toEqual(['start a', 'suspend a', 'start b', 'start b'])
  await appliance.update({ vmname: null })
  expect(appliance.state).toBe('off')
})

test('a start is given up when the VM is disabled, and the VM is ended', async () => {
  const all = await newAppliance()
  const { appliance, engine, until } = all
  const started = faultOf(appliance.update({ enable: true, vmname: 'a' }))
  await until('vm', { last_error: 'The appliance VM "a" is starting: its address is not known yet' })
  await appliance.update({ enable: false })
  expect(await started).toMatchObject({ status: 409, message: /changed meanwhile/ })
  expect([engine.done, appliance.state, await vmOf(all)]).toEqual([['start a', 'stop a'], 'off', undefined])
})

test('an engine that hangs is not waited for when the VM is disabled, and what comes late of it is ended', async () => {
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

test('what fails is told, the settings are kept, and another request tries again', async () => {
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

test('a VM that could not be ended is ended when that is asked for again', async () => {
  const all = await running()
  const { appliance, engine } = all
  engine.fault = conflict('libvirt: it went away')
  await faultOf(appliance.update({ enable: false }))
  engine.fault = undefined
  await appliance.update({ enable: false })
  expect([engine.done, engine.isOn, await vmOf(all)]).toEqual([['start a', 'stop a', 'stop a'], false, undefined])
})

test('what is disabled while another VM is being ended is not started any more', async () => {
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

test('a VM that only stands still is ended, too', async () => {
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

test('the end of the service does not wait longer than it may for a guest that is being ended', async () => {
  const { appliance, engine, until } = await running({ endMs: 600_000, exitMs: 50 })
  engine.obeys = false
  const ended = faultOf(appliance.update({ enable: false }))
  await until('vm', { last_error: 'The appliance VM "a" is being stopped' })
  await appliance.close()
  expect(await ended).toMatchObject({ status: 409, message: 'The service ends' })
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
    host: { capabilities: () => Promise.reject(new Error('none')), load: () => Promise.reject(new Error('none')) },
    fetch: async () => Response.json([{ ip_address: address, netmask: ours }]),
  })
  engine.port = compute.port
  await appliance.update({ enable: true, vmname: 'a' })
  await asked
  // What was answered before another question is known after it.
  await fleet.connect('vm')
  await (
    await fleet.send('vm', {
      ...{ method: 'GET', path: '/', headers: {}, body: null },
      signal: AbortSignal.timeout(5000),
    })
  ).text()
  const warnings = () => events.flatMap((event) => ('message' in event ? [event.message] : []))
  if (outcome === 'warned')
    await expect.poll(warnings).toEqual([expect.stringMatching(/"a" \(127\.0\.0\.1, netmask 255/)])
  await appliance.update({ enable: false })
  if (outcome === 'silent') expect(warnings()).toEqual([])
})

test('a request does not start again at once what has just failed', async () => {
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
  expect(await started).toMatchObject({ status: 409, message: /it ended before a service answered in it/ })
  const compute = await StandIn.start()
  compute.capabilities = (_, res) => void res.end('{"version":"9.0.0","node_types":[]}')
  engine.port = compute.port
  expect(await faultOf(appliance.update({ enable: true }))).toMatchObject({ status: 409, message: /it runs 9\.0\.0/ })
})

test('a VM that ends by itself is the compute no more, and a request starts it again', async () => {
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

test.for(['stop', 'suspend', 'keep'] as const)('at the end of the service: %s', async (when_exit) => {
  const { appliance, engine } = await running()
  await appliance.update({ when_exit })
  await appliance.close()
  expect(engine.done).toEqual(when_exit === 'keep' ? ['start a'] : ['start a', `${when_exit} a`])
  expect(await faultOf(appliance.update({ ram: 100 }))).toMatchObject({ status: 409 })
  await appliance.close()
})

test('the end of the service gives up a start', async () => {
  const { appliance, engine, until } = await newAppliance()
  const started = faultOf(appliance.update({ enable: true, vmname: 'a' }))
  await until('vm', { last_error: 'The appliance VM "a" is starting: its address is not known yet' })
  await appliance.close()
  expect(await started).toMatchObject({ status: 409, message: /The service ends/ })
  expect(engine.done).toEqual(['start a', 'stop a'])
})

test('what cannot be saved changes nothing', async () => {
  const { appliance, engine, store } = await running()
  store.fault = new Error('the disk is full')
  await expect(appliance.update({ enable: false })).rejects.toThrow('the disk is full')
  expect([appliance.settings.enable, appliance.state, engine.done]).toEqual([true, 'on', ['start a']])
})

test('what was saved is started when the service starts', async () => {
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

test('a compute in place of a VM is followed when it changes or goes', async () => {
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
