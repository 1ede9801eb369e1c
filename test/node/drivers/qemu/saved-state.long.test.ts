import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { monitorName } from '../../../../runtime/node/drivers/qemu/monitor-path.ts'
import { saveState } from '../../../../runtime/node/drivers/qemu/saved-state.ts'
import { hangMs } from '../../../support/limits.ts'
import { requireProgram } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'
import { counting, countingBios } from './boot-sectors.ts'
import { booting, type Machine, MachineLab, qemuImg, sharedService, smallest } from './machine-lab.ts'
import { monitor, qemuName } from './qemu-process.ts'

const service = sharedService()
const saving = { on_close: 'save_vm_state' } as const

async function savingMachine(settings: Record<string, unknown> = {}) {
  const lab = await MachineLab.create(service())
  const machine = await lab.machine({ ...booting(await lab.image('counting.img', counting)), ...saving, ...settings })
  return { lab, machine }
}

/** A machine without a disk. */
async function disklessMachine() {
  const lab = await MachineLab.create(service())
  await writeFile(lab.imagePath('counting.bin'), countingBios)
  const machine = await lab.machine({
    ...smallest,
    ...saving,
    ...{ console_type: 'telnet', bios_image: 'counting.bin' },
  })
  return { lab, machine }
}

/** What the guest counts to next. */
async function expectNext(machine: Machine, letter: string): Promise<void> {
  const terminal = await machine.terminal('')
  terminal.type('x')
  await terminal.expect(letter)
}

async function snapshotsIn(machine: Machine, disk: string): Promise<string> {
  return qemuImg('snapshot', '-U', '-l', join((await machine.view()).node_directory, disk))
}

describeWith(requireProgram(qemuName))('a machine that saves its state', () => {
  test('continues from it; the saved state is in its disk only while it is stopped', async () => {
    const { lab, machine } = await savingMachine()
    await machine.boot()
    await expectNext(machine, 'a')
    const feed = await lab.feed()
    await machine.must('stop')
    expect(await snapshotsIn(machine, 'hda_disk.qcow2')).toContain('patchbay')
    await machine.must('start')
    expect(await snapshotsIn(machine, 'hda_disk.qcow2')).not.toContain('patchbay')
    await expectNext(machine, 'b')
    // Also what was suspended, which goes on when it is started.
    await machine.must('suspend', 'stop', 'start')
    expect(await machine.status()).toBe('started')
    await expectNext(machine, 'c')
    expect(feed.messages('log.warning')).toEqual([])
    await machine.remove()
  })

  test('needs no disk for that', async () => {
    const { machine } = await disklessMachine()
    await machine.boot()
    await expectNext(machine, 'a')
    await machine.must('stop')
    expect(await snapshotsIn(machine, 'state.qcow2')).toContain('patchbay')
    await machine.must('start')
    await expectNext(machine, 'b')
    expect(await snapshotsIn(machine, 'state.qcow2')).not.toContain('patchbay')
    await machine.remove()
  })

  test.for([
    ['with a disk', savingMachine],
    ['without a disk', disklessMachine],
  ] as const)(
    '%s begins anew when it no longer saves its state, and does not return to the saved one',
    async ([, made]) => {
      const { machine } = await made()
      await machine.boot()
      await expectNext(machine, 'a')
      await machine.must('stop')
      await machine.update({ on_close: 'power_off' })
      await machine.boot()
      await machine.must('stop')
      await machine.update(saving)
      await machine.boot()
      await expectNext(machine, 'a')
      await machine.remove()
    },
  )

  test('does not continue with a disk when it had none', async () => {
    const { lab, machine } = await disklessMachine()
    await machine.boot()
    await expectNext(machine, 'a')
    await machine.must('stop')
    await machine.update({ hda_disk_image: await lab.image('disk.img') })
    const { status, body } = await machine.do('start')
    expect(status).toBe(409)
    expect(body.message).toMatch(/^The machine had no disk when it was stopped; .* set on_close to power_off/)
    await machine.update({ on_close: 'power_off' })
    await machine.boot()
    await machine.must('stop')
    await machine.update({ hda_disk_image: '', ...saving })
    await machine.boot()
    await machine.remove()
  })

  test('saves it when the project is closed, too', async () => {
    const { lab, machine } = await savingMachine()
    await machine.boot()
    await expectNext(machine, 'a')
    await service().call('POST', `${lab.path}/close`)
    await MachineLab.create(service(), lab.id)
    await machine.must('start')
    await expectNext(machine, 'b')
    await machine.remove()
  })

  test('saves it when the service ends, too', async () => {
    const { machine } = await savingMachine()
    await machine.boot()
    await expectNext(machine, 'a')
    await service().end()
    await service().restart()
    await machine.must('start')
    await expectNext(machine, 'b')
    await machine.remove()
  })

  test('does not return to the saved state when its service was killed during a stop', async () => {
    const { lab, machine } = await savingMachine()
    await machine.boot()
    await expectNext(machine, 'a')
    await service().kill('SIGKILL')
    const qmp = await monitor(join(service().data, 'run', monitorName(machine.id)))
    await qmp.execute('stop', {}, hangMs)
    await saveState(qmp)
    qmp.close()
    await service().restart()
    expect(await machine.status()).toBe('suspended')
    expect(await snapshotsIn(machine, 'hda_disk.qcow2')).not.toContain('patchbay')
    await machine.must('resume')
    await expectNext(machine, 'b')
    const feed = await lab.feed()
    await machine.must('stop', 'start')
    expect(feed.messages('log.warning')).toEqual([])
    await expectNext(machine, 'c')
    await machine.remove()
  })

  test('reports why it cannot, and still stops', async () => {
    const { lab, machine } = await savingMachine({ linked_clone: false })
    await machine.boot()
    const feed = await lab.feed()
    await machine.must('stop')
    expect(feed.messages('log.warning')).toEqual([
      'R1: The state cannot be saved: hda is a raw image, only qcow2 can hold a state',
    ])
    expect(await machine.status()).toBe('stopped')
    await machine.boot()
    await machine.remove()
  })

  test('is not lost, but says how to begin again, when the state does not fit its settings any more', async () => {
    const { lab, machine } = await savingMachine()
    await machine.boot()
    await expectNext(machine, 'a')
    await machine.must('stop')
    for (const changes of [{ ram: 32 }, { ram: 16, hdb_disk_image: await lab.image('other.img') }]) {
      await machine.update(changes)
      const { status, body } = await machine.do('start')
      expect(status).toBe(409)
      expect(body.message).toMatch(/its saved state may no longer fit .* set on_close to power_off/)
      expect(await snapshotsIn(machine, 'hda_disk.qcow2')).toContain('patchbay')
    }
    await machine.update({ hdb_disk_image: '' })
    await machine.must('start')
    await expectNext(machine, 'b')
    await machine.must('stop')
    await machine.update({ ram: 32, on_close: 'power_off' })
    await machine.boot()
    await machine.remove()
  })
})
