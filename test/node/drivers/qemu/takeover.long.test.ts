import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { KeeperClient } from '../../../../runtime/node/keeper/client/client.ts'
import { requireProgram } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'
import { counting } from './boot-sectors.ts'
import { booting, MachineLab, pidsOf, sharedService } from './machine-lab.ts'
import { qemuName } from './qemu-process.ts'

const service = sharedService()

describeWith(requireProgram(qemuName))('a service after one that was killed', () => {
  test('finds machines in their states, controls them, and notices those that ended', async () => {
    const lab = await MachineLab.create(service())
    const running = await lab.machine(booting(await lab.image('counting.img', counting)))
    const [paused, killed, left] = [await lab.machine(), await lab.machine(), await lab.machine()]
    const terminal = await running.boot()
    terminal.type('x')
    await terminal.expect('a')
    await paused.bring('suspended')
    await killed.bring('started')
    await left.bring('suspended')
    const views = [await running.view(), await paused.view()]
    const pids = [running.pid, paused.pid]

    await service().kill('SIGKILL')
    killed.signal('SIGKILL')
    left.signal('SIGTERM')
    await expect.poll(() => [...pidsOf(killed.id), ...pidsOf(left.id)]).toEqual([])
    await service().restart()

    expect([await running.view(), await paused.view()]).toEqual(views)
    expect([running.pid, paused.pid]).toEqual(pids)
    // Its console was there all the time.
    terminal.type('x')
    await terminal.expect('b')
    await running.must('suspend', 'resume', 'reload')
    await terminal.expect('>')
    await paused.must('resume')
    expect(await paused.status()).toBe('started')
    await paused.must('stop')
    expect(await paused.status()).toBe('stopped')
    // What happens by itself is heard of again.
    running.signal('SIGTERM')
    await running.becomes('stopped')

    const reason = 'The program ended by itself (signal SIGKILL)'
    expect(await killed.view()).toMatchObject({ status: 'stopped', status_reason: reason })
    const quiet = 'It ended by itself while no service was running'
    expect(await left.view()).toMatchObject({ status: 'stopped', status_reason: quiet })
    for (const machine of [running, paused, killed, left]) await machine.must('start', 'stop')
    expect(await left.view()).toMatchObject({ status: 'stopped', status_reason: null })
  })

  test('runs the machine that the other was about to run', async () => {
    const lab = await MachineLab.create(service())
    const machine = await lab.machine(booting(await lab.image('counting.img', counting)))
    // Its emulator does not come to the point where its service lets the guest go.
    const starting = machine.do('start').catch(() => undefined)
    await expect.poll(() => machine.pid, { interval: 1 }).toBeGreaterThan(0)
    machine.signal('SIGSTOP')
    await service().kill('SIGKILL')
    await starting
    machine.signal('SIGCONT')
    await service().restart()
    expect(await machine.status()).toBe('started')
    expect(pidsOf(machine.id)).toHaveLength(1)
    await machine.terminal('>')
    await machine.remove()
  })

  test('shows machines as stopped whose keeper was killed, with the service or without it', async () => {
    const lab = await MachineLab.create(service())
    const [running, paused] = [await lab.machine(), await lab.machine()]
    await running.bring('started')
    await paused.bring('suspended')
    const feed = await lab.feed()
    process.kill(await keeperOf(service().data), 'SIGKILL')
    await running.becomes('stopped')
    await paused.becomes('stopped')
    expect(feed.messages('log.error')).toEqual([
      'The process that holds the nodes died; its nodes are stopped and can be started again',
    ])
    const told = 'The process that holds the nodes died'
    expect(await running.view()).toMatchObject({ status_reason: told })
    expect([...pidsOf(running.id), ...pidsOf(paused.id)]).toEqual([])

    await running.bring('started')
    await paused.bring('suspended')
    await service().kill('SIGKILL')
    process.kill(await keeperOf(service().data), 'SIGKILL')
    await service().restart()
    const found = 'It was found stopped when the service started'
    for (const machine of [running, paused]) {
      expect(await machine.view()).toMatchObject({ status: 'stopped', status_reason: found })
      expect(pidsOf(machine.id)).toEqual([])
      await machine.must('start', 'stop')
    }
  })

  test('leaves no machine running when its keeper dies during starts', async () => {
    const lab = await MachineLab.create(service())
    const [machine, other] = [await lab.machine({ adapters: 1 }), await lab.machine()]
    await machine.must('start', 'stop')
    process.kill(await keeperOf(service().data), 'SIGKILL')
    // Its death is known by then, and the next one is not there yet.
    await pause(50)
    const answers = await Promise.all([machine.do('start'), other.do('start'), other.do('start')])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    // These have their turn after the news of the death.
    await Promise.all([machine.do('suspend'), other.do('suspend')])
    expect([await machine.status(), await other.status()]).toEqual(['stopped', 'suspended'])
    expect([...pidsOf(machine.id), ...pidsOf(other.id)]).toHaveLength(1)
    for (const it of [machine, other]) {
      await it.must('start', 'stop')
      await it.remove()
    }
  })
})

async function keeperOf(data: string): Promise<number> {
  const keeper = await KeeperClient.connect(data)
  keeper.disconnect()
  return keeper.pid
}
