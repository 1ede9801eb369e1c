import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EngineNode } from '../../../../runtime/node/engine/nodes/engine-node.ts'
import type { NodeKind } from '../../../../runtime/node/engine/nodes/kind.ts'
import { NodeLifecycle, type NodeLifecycleOptions } from '../../../../runtime/node/engine/nodes/lifecycle.ts'
import { OpenProject } from '../../../../runtime/node/engine/projects/open-project.ts'
import { KeeperError } from '../../../../runtime/node/keeper/protocol/error.ts'
import type { Exit, UnitState } from '../../../../runtime/node/keeper/protocol/protocol.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import { freshDirectory } from '../../../support/directory.ts'

const ended = (code: number): Exit => ({ code, signal: null, requested: false, last_words: 'bye' })
const process: UnitState = { key: '', pid: 1, run: 1, console: null, exit: null }

/** A node of a kind that writes down what happens to it; what is in `kind` and `keeper` is done instead of nothing. */
async function lab(kind: Partial<NodeKind> = {}, keeper: Record<string, () => unknown> = {}) {
  const path = await freshDirectory()
  const project_id = '00000000-0000-4000-8000-000000000001'
  const project = { version: 1, project_id, name: 'lab', temporary: false, variables: null, open: true, deleted: [] }
  await mkdir(join(path, '.patchbay/nodes'), { recursive: true })
  const told: string[] = []
  const events: EventPayload[] = []
  const note = (what: string) => void told.push(what)
  const noting: Partial<NodeKind> = {
    stopGraceMs: 100,
    view: () => ({}) as never,
    launch: async () => ({ command_line: 'image', run: {} as never }),
    ...kind,
    onStarted: (node, isNew) => {
      note(isNew ? 'started' : 'found')
      kind.onStarted?.(node, isNew)
    },
    onExited: async (node) => {
      note('exited')
      await kind.onExited?.(node)
    },
  }
  const node = new EngineNode(new OpenProject(project as never, path, path), noting as NodeKind, {
    ...{ version: 1, kind: 'iou', node_id: '00000000-0000-4000-8000-000000000002', name: 'R1', console: null },
    ...{ console_type: 'telnet', command_line: '', status_reason: null, running: false, properties: {}, ports: {} },
  })
  const lifecycle = new NodeLifecycle({
    keeper: {
      unit: async () => undefined,
      call: async (op: string) => {
        note(op)
        return keeper[op]?.() ?? (op === 'unit.start' ? { pid: 1, run: 1 } : { exit: null })
      },
      ...keeper,
    },
    links: { wires: async () => new Map(), changePorts: () => note('other ports') },
    listening: { free: async () => {}, of: () => undefined },
    runsAlways: () => false,
    emit: (_: EngineNode, payload: EventPayload) => events.push(payload),
  } as unknown as NodeLifecycleOptions)
  const warnings = () => events.flatMap((event) => (event.type === 'log.warning' ? [event.message] : []))
  return { node, lifecycle, told, events, warnings }
}

const refused = (message: string) => ({ status: 409, message: expect.stringContaining(message) })
const fail = (message: string) => () => {
  throw new Error(message)
}

test('the hooks of a kind are called when its process runs, and when it has ended', async () => {
  const { node, lifecycle, told } = await lab()
  await lifecycle.start(node)
  await lifecycle.stop(node)
  expect(told).toEqual(['unit.start', 'started', 'unit.stop', 'exited'])
})

test('a node is stopped, also when a hook of its kind fails', async () => {
  const { node, lifecycle, warnings, events } = await lab({ onExited: fail('no such thing') })
  await lifecycle.start(node)
  await lifecycle.stop(node)
  expect([node.status, warnings()]).toEqual(['stopped', ['R1: no such thing']])
  expect(events.at(-1)).toMatchObject({ change: 'stopped' })
  await lifecycle.start(node)
  await lifecycle.onUnitExit(node, 1, ended(1))
  expect([node.status, warnings().length]).toEqual(['stopped', 2])
})

test('a node without a unit is shown as stopped', async () => {
  const seen: string[] = []
  const { node, lifecycle } = await lab({ onExited: async ({ status }) => void seen.push(status) })
  await lifecycle.start(node)
  await lifecycle.stop(node)
  await lifecycle.start(node)
  lifecycle.recordKeeperDeath(() => true, true)
  await lifecycle.onUnitGone(node, 'it is gone')
  expect([seen, node.status]).toEqual([['started', 'started'], 'stopped'])
})

test('a failed start, and only that, cleans up after the preparation of its kind', async () => {
  const refuse = () => {
    throw new KeeperError('spawn_failed', 'it cannot be started')
  }
  const early = await lab({ launch: async () => fail('no image')() as never })
  await expect(early.lifecycle.start(early.node)).rejects.toThrow('no image')
  expect(early.told).toEqual(['unit.stop'])
  const late = await lab({}, { 'unit.start': refuse })
  await expect(late.lifecycle.start(late.node)).rejects.toMatchObject(refused('it cannot be started'))
  expect(late.told).toEqual(['unit.start', 'unit.stop', 'exited'])
})

test('when a kind fails after the start of its process, the process is ended', async () => {
  const { node, lifecycle, told } = await lab({ onStarted: fail('no more') })
  await expect(lifecycle.start(node)).rejects.toThrow('no more')
  expect([node.status, node.record.running, told]).toEqual([
    'stopped',
    false,
    ['unit.start', 'started', 'unit.stop', 'exited'],
  ])
})

test('a unit that ended after the inventory is not shown as running', async () => {
  const { node, lifecycle, told } = await lab({}, { unit: async () => ({ ...process, exit: ended(3) }) })
  lifecycle.recordExit(node.key, 1)
  await lifecycle.adopt(node, process)
  expect([node.status, node.record.status_reason]).toEqual([
    'stopped',
    'The program ended by itself (exit code 3): bye',
  ])
  expect(told).toEqual(['unit.forget', 'exited'])
  const other = await lab()
  await other.lifecycle.adopt(other.node, process)
  expect([other.node.status, other.told]).toEqual(['started', ['found']])
})

test('a hint is reported with the end of a process that ended by itself', async () => {
  const hint = ({ code }: Exit) => (code === 11 ? 'try another image' : undefined)
  const { node, lifecycle, events } = await lab({ hint })
  for (const code of [11, 12]) {
    await lifecycle.start(node)
    await lifecycle.onUnitExit(node, 1, ended(code))
  }
  const errors = events.flatMap((event) => (event.type === 'log.error' ? [event.message] : []))
  expect(errors).toEqual([
    'R1: the program ended by itself (exit code 11): bye; try another image',
    'R1: the program ended by itself (exit code 12): bye',
  ])
})

test('an embedded pc whose port was taken at the last moment is started again with other ports', async () => {
  const taken = () => {
    throw new KeeperError('spawn_failed', 'the embedded pc cannot be started: bind EADDRINUSE 127.0.0.1:2')
  }
  const answers = [taken, () => ({ pid: 0, run: 1 })]
  const { node, lifecycle, told, warnings, events } = await lab({}, { 'unit.start': () => answers.shift()?.() })
  await lifecycle.start(node)
  expect(told).toEqual(['unit.start', 'unit.stop', 'exited', 'other ports', 'unit.start', 'started'])
  expect(node.status).toBe('started')
  expect(warnings()).toEqual([expect.stringContaining('started again with other ports')])
  // The failed first try is no news of the node.
  expect(events.map(({ type }) => type)).toEqual(['log.warning', 'node.updated'])
})

test('a program that ended as its port was taken, and does not start with other ports, is an error', async () => {
  const refuse = () => {
    throw new KeeperError('spawn_failed', 'no such program')
  }
  const answers = [() => ({ pid: 1, run: 1 }), refuse]
  const { node, lifecycle, told, events } = await lab({}, { 'unit.start': () => answers.shift()?.() })
  await lifecycle.start(node)
  await lifecycle.onUnitExit(node, 1, { ...ended(1), last_words: 'bind: Address already in use' })
  expect([node.status, told.includes('other ports')]).toEqual(['stopped', true])
  const errors = events.flatMap((event) => (event.type === 'log.error' ? [event.message] : []))
  expect(errors).toEqual([`R1: ${node.record.status_reason}`])
})

test.each([
  [1, ['unit.start', 'unit.stop', 'exited', 'unit.start', 'started'], undefined],
  [9, ['unit.start', 'unit.stop', 'exited', 'unit.start', 'unit.stop', 'exited'], 'silent'],
])('a guest that is silent %i times is started once more', async (times, expected, message) => {
  let silent = times
  const begin = async () => {
    if (silent-- > 0) throw new Error('silent')
  }
  const startsAgain = (error: unknown) => (error as Error).message === 'silent'
  const { node, lifecycle, told, warnings } = await lab({ control: { begin, startsAgain, release() {} } as never })
  const start = lifecycle.start(node)
  if (message === undefined) await start
  else await expect(start).rejects.toThrow(message)
  expect(told).toEqual(expected)
  expect(warnings()).toEqual(['R1: silent; it will be started again'])
})
