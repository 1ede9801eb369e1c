import { expect, test } from 'vitest'
import { isTcpFree } from '../../../../runtime/node/engine/ports/bind-test.ts'
import { requireProgram } from '../../../support/require.ts'
import { quickest, took } from '../../../support/rounds.ts'
import { describeWith } from '../../../support/test-with.ts'
import { crashing, leaving, obedient, panicking } from './boot-sectors.ts'
import { booting, type Machine, MachineLab, pidsOf, sharedService } from './machine-lab.ts'
import { qemuName } from './qemu-process.ts'

const service = sharedService()

/** It is shown stopped, nothing of it runs, its ports are its own, and it starts again. */
async function expectStopped(machine: Machine, { console }: { console: number | null }) {
  await machine.becomes('stopped')
  expect(pidsOf(machine.id)).toEqual([])
  expect((await machine.view()).console).toBe(console)
  if (console !== null) expect(await isTcpFree(console, '127.0.0.1')).toBe(true)
  expect((await machine.do('start')).status).toBe(200)
  await machine.remove()
}

describeWith(requireProgram(qemuName))('a machine that ends without our doing', () => {
  test.for(['started', 'suspended'] as const)('by SIGTERM while %s is only shown as stopped', async (state) => {
    const lab = await MachineLab.create(service())
    const machine = await lab.machine({ console_type: 'telnet' })
    await machine.bring(state)
    const before = await machine.view()
    const feed = await lab.feed()
    machine.signal('SIGTERM')
    expect((await feed.becomes('stopped')).event).toMatchObject({ status_reason: null })
    expect(feed.messages('log.error')).toEqual([])
    await expectStopped(machine, before)
  })

  test.for(['started', 'suspended'] as const)('by a signal while %s is reported with its reason', async (state) => {
    const lab = await MachineLab.create(service())
    const machine = await lab.machine({ console_type: 'telnet' })
    await machine.bring(state)
    const before = await machine.view()
    const feed = await lab.feed()
    machine.signal('SIGKILL')
    const error = await feed.until(({ action }) => action === 'log.error')
    expect(error.event.message).toBe('R1: the program ended by itself (signal SIGKILL)')
    expect((await machine.view()).status_reason).toBe('The program ended by itself (signal SIGKILL)')
    await expectStopped(machine, before)
  })

  test('because its guest powers it off is shown as stopped at once, and not as a failure', async () => {
    const lab = await MachineLab.create(service())
    const machine = await lab.machine(booting(await lab.image('leaving.img', leaving)))
    const round = async () => {
      const terminal = await machine.boot()
      const before = await machine.view()
      const feed = await lab.feed()
      const time = await took(async () => {
        terminal.type('x')
        expect((await feed.becomes('stopped')).event).toMatchObject({ status_reason: null })
      })
      expect(feed.messages('log.error')).toEqual([])
      await terminal.closed()
      await expectStopped(machine, before)
      return time
    }
    expect(await quickest(2000, round)).toBeLessThan(2000)
  })

  test.for(['power_off', 'shutdown_signal', 'save_vm_state'])(
    'with -no-shutdown and on_close %s: its process ends with its guest, and nothing is saved of it',
    async (on_close) => {
      const lab = await MachineLab.create(service())
      const image = await lab.image('leaving.img', leaving)
      const machine = await lab.machine({ ...booting(image), options: '-vga none -no-shutdown', on_close })
      const terminal = await machine.boot()
      const feed = await lab.feed()
      terminal.type('x')
      await feed.becomes('stopped')
      expect(feed.messages('log.error')).toEqual([])
      // An event of the start, such as that of the digest of an image, may come late.
      expect(feed.states.filter((it) => it !== 'started')).toEqual(['stopped'])
      expect(pidsOf(machine.id)).toEqual([])
      // It begins anew.
      await machine.boot()
      await machine.update({ on_close: 'power_off' })
      await machine.remove()
    },
  )

  test('because it resets itself with -no-reboot is shown as stopped', async () => {
    const lab = await MachineLab.create(service())
    const image = await lab.image('crashing.img', crashing)
    const machine = await lab.machine({ ...booting(image), options: '-vga none -no-reboot' })
    const feed = await lab.feed()
    await machine.must('start')
    await feed.becomes('stopped')
    expect(feed.messages('log.error')).toEqual([])
    await machine.remove()
  })

  test('with another exit code is reported with this code and its output', async () => {
    const lab = await MachineLab.create(service())
    // The debug port of the machine ends it with twice the value and one.
    const exits = Buffer.from(leaving)
    Buffer.from('b001baf404ee', 'hex').copy(exits, 0)
    const image = await lab.image('exits.img', exits)
    const options = '-vga none -device isa-debug-exit,iobase=0x4f4,iosize=1'
    const machine = await lab.machine({ ...booting(image), options })
    const feed = await lab.feed()
    await machine.must('start')
    const error = await feed.until(({ action }) => action === 'log.error')
    expect(error.event.message).toMatch(/^R1: the program ended by itself \(exit code 3\)/)
    await machine.becomes('stopped')
    await machine.remove()
  })

  test('by a panic with a setting that pauses it then: it is paused until it is reset', async () => {
    const lab = await MachineLab.create(service())
    const image = await lab.image('panicking.img', panicking)
    const options = '-vga none -device pvpanic -action panic=pause'
    const machine = await lab.machine({ ...booting(image), options })
    const terminal = await machine.boot()
    const feed = await lab.feed()
    terminal.type('x')
    expect((await feed.becomes('suspended')).event.status_reason).toBe('The guest panicked: reload the node')
    await machine.must('reload')
    expect(await machine.view()).toMatchObject({ status: 'started', status_reason: null })
    await terminal.expect('>')
    await machine.remove()
  })

  test('by its power button', async () => {
    const lab = await MachineLab.create(service())
    const image = await lab.image('obedient.img', obedient)
    const machine = await lab.machine({ ...booting(image), on_close: 'shutdown_signal' })
    const terminal = await machine.boot()
    const feed = await lab.feed()
    await machine.must('stop')
    await terminal.closed()
    await feed.becomes('stopped')
    expect(feed.states).toEqual(['stopped'])
    expect(feed.messages('log.warning')).toEqual([])
    await machine.remove()
  })
})
