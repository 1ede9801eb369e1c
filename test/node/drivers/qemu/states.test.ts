import { expect, test } from 'vitest'
import { requireProgram } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'
import { type Action, MachineLab, pidsOf, type Status, sharedService } from './machine-lab.ts'
import { qemuName } from './qemu-process.ts'

const service = sharedService()

/** What an action is answered in a state, and the state afterwards. */
const matrix: readonly (readonly [Action, Status, number, Status])[] = [
  ['start', 'stopped', 200, 'started'],
  ['start', 'started', 200, 'started'],
  ['start', 'suspended', 200, 'started'],
  ['stop', 'stopped', 204, 'stopped'],
  ['stop', 'started', 204, 'stopped'],
  ['stop', 'suspended', 204, 'stopped'],
  ['suspend', 'stopped', 204, 'stopped'],
  ['suspend', 'started', 204, 'suspended'],
  ['suspend', 'suspended', 204, 'suspended'],
  ['resume', 'stopped', 409, 'stopped'],
  ['resume', 'started', 204, 'started'],
  ['resume', 'suspended', 204, 'started'],
  ['reload', 'stopped', 204, 'stopped'],
  ['reload', 'started', 204, 'started'],
  ['reload', 'suspended', 204, 'suspended'],
]

describeWith(requireProgram(qemuName))('a machine', () => {
  test.for(matrix)('%s, %s: %i, then %s', async ([action, before, status, after]) => {
    const machine = await (await MachineLab.create(service())).machine()
    await machine.bring(before)
    const { pid } = machine
    const answer = await machine.do(action)
    expect(answer.status).toBe(status)
    expect(await machine.status()).toBe(after)
    if (action === 'start') expect(answer.body).toMatchObject({ status: 'started', status_reason: null })
    // It is the same emulator that is in another state, or none any more.
    if (before !== 'stopped') expect(pidsOf(machine.id)).toEqual(after === 'stopped' ? [] : [pid])
    await machine.remove()
  })

  test.for([
    ['stopped', 200],
    ['started', 409],
    ['suspended', 409],
  ] as const)('the type of its console can be changed only when it is %s', async ([state, status]) => {
    const machine = await (await MachineLab.create(service())).machine()
    await machine.bring(state)
    const answer = await machine.update({ console_type: 'vnc' })
    expect(answer.status).toBe(status)
    if (status === 409) expect(answer.body.message).toMatch(/^console_type: stop the node first/)
    expect(await machine.view()).toMatchObject({ status: state, console_type: status === 200 ? 'vnc' : 'none' })
    await machine.remove()
  })

  test.for(['stopped', 'started', 'suspended'] as const)('can be deleted when it is %s', async (state) => {
    const machine = await (await MachineLab.create(service())).machine()
    await machine.bring(state)
    expect((await machine.remove()).status).toBe(204)
    expect(pidsOf(machine.id)).toEqual([])
  })

  test('reports every change of its state, once', async () => {
    const lab = await MachineLab.create(service())
    const machine = await lab.machine()
    const feed = await lab.feed()
    await machine.must('start', 'start', 'suspend', 'suspend', 'start', 'resume', 'suspend', 'resume', 'reload', 'stop')
    await machine.must('stop', 'reload', 'suspend')
    await lab.machine({ name: 'last' })
    await feed.until(({ action }) => action === 'node.created')
    const told = feed.seen.filter(({ action }) => action === 'node.updated').map(({ event }) => event.status)
    expect(told).toEqual(['started', 'suspended', 'started', 'suspended', 'started', 'stopped'])
    expect(feed.messages('log.error')).toEqual([])
    await machine.remove()
  })

  test('is started once by two requests at once, and stopped by a stop in between', async () => {
    const machine = await (await MachineLab.create(service())).machine()
    const answers = await Promise.all(
      (['start', 'start', 'stop', 'start'] as const).map((action) => machine.do(action)),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 204, 200])
    expect(pidsOf(machine.id)).toHaveLength(1)
    await machine.remove()
  })
})
