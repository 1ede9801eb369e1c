import { join } from 'node:path'
import { expect, test } from 'vitest'
import { requireProgram } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'
import { GuestHardware, hardwareOptions } from './guest-hardware.ts'
import { type Machine, MachineLab, sharedService } from './machine-lab.ts'
import { qemuName } from './qemu-process.ts'

const service = sharedService()
let sockets = 0

/** A machine with e1000 cards, the first of which is in PCI slot 2 without a graphics card. */
async function machineWith(adapters: number, settings: Record<string, unknown> = {}) {
  const lab = await MachineLab.create(service())
  const socket = join(service().data, `hardware-${++sockets}`)
  const machine = await lab.machine({ adapters, options: `-vga none ${hardwareOptions(socket)}`, ...settings })
  const nio = async () => ({ type: 'nio_udp', lport: await lab.reserve(), rhost: '127.0.0.1', rport: 9 })
  return { lab, machine, nio, hardware: () => GuestHardware.open(socket) }
}

const attach = async (machine: Machine, adapter: number, nio: Record<string, unknown>) =>
  expect(await machine.nio('POST', adapter, nio)).toMatchObject({ status: 201 })

describeWith(requireProgram(qemuName))('a guest sees a cable', () => {
  test('where something is attached when it starts, and is not suspended', async () => {
    const { machine, nio, hardware } = await machineWith(3)
    await attach(machine, 0, await nio())
    await attach(machine, 2, { ...(await nio()), suspend: true })
    await machine.must('start')
    await (await hardware()).shows(true, false, false)
    await machine.remove()
  })

  test('when something is attached, detached, suspended and resumed while it runs, paused or not', async () => {
    const { machine, nio, hardware } = await machineWith(2)
    await machine.must('start')
    const cards = await hardware()
    await cards.shows(false, false)
    const link = await nio()
    await attach(machine, 1, link)
    await cards.shows(false, true)
    expect((await machine.nio('PUT', 1, { ...link, suspend: true })).status).toBe(201)
    await cards.shows(false, false)
    expect((await machine.nio('PUT', 1, { ...link, suspend: false })).status).toBe(201)
    await cards.shows(false, true)
    await machine.must('suspend')
    expect((await machine.nio('DELETE', 1)).status).toBe(204)
    await cards.shows(false, false)
    await machine.must('resume')
    await attach(machine, 0, await nio())
    await cards.shows(true, false)
    await machine.remove()
  })

  test('with its present state, not the one when its memory was saved', async () => {
    const { machine, nio, hardware } = await machineWith(2, { on_close: 'save_vm_state' })
    await attach(machine, 0, await nio())
    await machine.must('start')
    await (await hardware()).shows(true, false)
    await machine.must('stop')
    await machine.nio('DELETE', 0)
    await attach(machine, 1, await nio())
    await machine.must('start')
    await (await hardware()).shows(false, true)
    await machine.remove()
  })

  test('no longer at removed adapters, while the others keep theirs', async () => {
    const { lab, machine, nio, hardware } = await machineWith(3)
    const links = [await nio(), await nio(), await nio()]
    for (const [adapter, link] of links.entries()) await attach(machine, adapter, link)
    await machine.must('start')
    const cards = await hardware()
    await cards.shows(true, true, true)
    expect((await machine.update({ adapters: 1 })).body.adapters).toBe(1)
    await cards.shows(true, false, false)
    expect((await machine.nio('POST', 1, links[1])).status).toBe(404)
    // Its ports are free again.
    const other = await lab.machine({ adapters: 1 })
    await attach(other, 0, links[2] ?? {})
    // What came back is in the machine still.
    await machine.update({ adapters: 3 })
    await attach(machine, 1, links[1] ?? {})
    await cards.shows(true, true, false)
    await machine.must('stop', 'start')
    await (await hardware()).shows(true, true, false)
    await machine.remove()
    await other.remove()
  })

  test('at none of the adapters that it only gets at its next start', async () => {
    const { lab, machine, nio, hardware } = await machineWith(1)
    await machine.must('start')
    await machine.update({ adapters: 2 })
    const feed = await lab.feed()
    await attach(machine, 1, await nio())
    expect(feed.messages('log.warning')).toEqual([])
    await machine.must('stop', 'start')
    await (await hardware()).shows(false, true)
    await machine.remove()
  })

  test('no longer at a removed adapter when the project is opened again', async () => {
    const lab = await MachineLab.create(service())
    const [machine, other] = [await lab.machine({ adapters: 2 }), await lab.machine({ adapters: 1 })]
    const link = { type: 'nio_udp', lport: await lab.reserve(), rhost: '127.0.0.1', rport: 9 }
    await attach(machine, 1, link)
    await machine.update({ adapters: 1 })
    await service().call('POST', `${lab.path}/close`)
    await MachineLab.create(service(), lab.id)
    await attach(other, 0, link)
    await machine.update({ adapters: 2 })
    expect((await machine.nio('DELETE', 1)).status).toBe(404)
    await Promise.all([machine.remove(), other.remove()])
  })
})
