import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { keeperDirectory } from '../../../../runtime/node/keeper/process/generation.ts'
import { operationInputs, streamOperations } from '../../../../runtime/node/keeper/protocol/protocol.ts'
import { emptyKeeper } from '../../../support/keeper.ts'
import { freePorts } from '../../../support/ports.ts'

interface Answer {
  readonly id: number | null
  readonly error?: { readonly code: string; readonly message: string }
}

/** Sends what the client of the service would not. */
async function connection(data: string) {
  const socket = connect(join(keeperDirectory(data), 'keeper.sock'))
  await once(socket, 'connect')
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]()
  const send = async (op: unknown, input: unknown): Promise<Answer> => {
    socket.write(`${JSON.stringify({ id: 1, op, with: input })}\n`)
    const { value, done } = await lines.next()
    if (done === true) throw new Error('the keeper closed the connection')
    return JSON.parse(value) as Answer
  }
  return { send, [Symbol.dispose]: () => void socket.destroy() }
}

/** One connection for all requests. */
async function rawConnection(data: string) {
  const { send, [Symbol.dispose]: close } = await connection(data)
  onTestFinished(close)
  return send
}

/** A keeper with two embedded pcs and a program that run, and whether they still do. */
async function busyKeeper() {
  const first = freePorts(40)
  const { client, data, shell } = await emptyKeeper()
  const pc = (at: number) => ({
    type: 'pc' as const,
    mac: `00:50:79:66:68:0${at}`,
    directory: data,
    script: 'startup.vpc',
    guest_port: first + at,
    switch_port: first + 10 + at,
  })
  await client.call('unit.start', { key: 'pc:1', run: pc(1) })
  await client.call('unit.start', { key: 'pc:2', run: pc(2) })
  await shell('shell', 'cat')
  await client.call('port.open', { key: 'pc:1/0/0', guest_port: first + 1 })
  const nio = {
    type: 'udp' as const,
    lport: first + 20,
    rhost: '127.0.0.1',
    rport: first + 21,
    suspend: false,
    filters: [],
  }
  await client.call('nio.attach', { key: 'pc:1/0/0', nio })
  const stillRunning = async () => {
    const { units } = await client.call('inventory', {})
    return units.filter(({ exit }) => exit === null).map(({ key }) => key)
  }
  return { client, data, pc, nio, first, stillRunning }
}

const all = ['pc:1', 'pc:2', 'shell']

test('a malformed start of a pc is refused and ends no other pc', async () => {
  const { data, pc, stillRunning } = await busyKeeper()
  const send = await rawConnection(data)
  const bad = [
    { ...pc(3), switch_port: 70_000 },
    { ...pc(3), switch_port: 'x' },
    { ...pc(3), guest_port: null },
    { ...pc(3), mac: 'no' },
    { ...pc(3), directory: 'x'.repeat(2 << 20) },
    { ...pc(3), directory: 7 },
    { ...pc(3), script: null },
    { ...pc(3), script: '../x' },
    { type: 'pc' },
    { type: 'attached', port: 99_999, ready_ms: 1 },
    { type: 'attached', path: `/${'x'.repeat(300)}`, ready_ms: 1 },
    { type: 'process', command: 'true' },
    {},
    null,
  ]
  for (const run of bad) {
    const { error } = await send('unit.start', { key: 'pc:3', run })
    expect(error, JSON.stringify(run)?.slice(0, 100)).toMatchObject({ code: 'bad_request' })
  }
  expect(await send('unit.stop', { key: 'pc:3', grace_ms: -1 })).toMatchObject({
    error: { message: expect.stringContaining('grace_ms') },
  })
  for (const op of ['constructor', '__proto__', 'toString', '', null, 7, {}])
    expect((await send(op, {})).error?.code).toBe('bad_request')
  expect(await stillRunning()).toEqual(all)
})

test('a line that is not a request only ends its own connection', async () => {
  const { data, stillRunning } = await busyKeeper()
  for (const line of ['null', '[]', '7', '{', '"x"', '\u0000']) {
    const socket = connect(join(keeperDirectory(data), 'keeper.sock'))
    socket.on('error', () => {})
    socket.write(`${line}\n`)
    await once(socket, 'close')
  }
  expect(await stillRunning()).toEqual(all)
})

test('the keeper answers any input of an operation, and its units keep running', async () => {
  const { data, client, pc, nio, first, stillRunning } = await busyKeeper()
  const send = await rawConnection(data)
  await writeFile(join(data, 'startup.vpc'), '')
  /** Inputs that are right, of which single members are then replaced. None of them ends what is asked for below. */
  const right: Partial<Record<keyof typeof operationInputs, unknown>> = {
    'unit.start': { key: 'pc:1', run: pc(1), console: { host: '127.0.0.1', port: first + 39 } },
    'unit.stop': { key: 'none', grace_ms: 1 },
    'unit.limit': { key: 'none', cpu_percent: 5 },
    'unit.forget': { key: 'none' },
    'console.listen': { key: 'pc:2', listen: { host: '127.0.0.1', port: first + 38 } },
    'port.open': { key: 'pc:2/0/0', guest_port: first + 2 },
    'port.close': { key: 'none' },
    'netio.tidy': { application_id: 500 },
    'nio.attach': {
      key: 'pc:1/0/0',
      nio: {
        ...nio,
        filters: [
          { type: 'delay', ms: 1, jitter_ms: 1 },
          { type: 'rate', kbps: 1000, burst_kb: 1, queue_ms: 1 },
          { type: 'bpf', programs: [[[0x06, 0, 0, 1]]] },
        ],
      },
    },
    'nio.detach': { key: 'none' },
    'port.report': { key: 'pc:1/0/0', fresh: false },
    'capture.start': { key: 'none', file: join(data, 'x.pcap'), link_type: 1, floor_mb: 0 },
    'capture.stop': { key: 'none' },
    'console.attach': { key: 'pc:1', replay: true, lines: 3 },
    'console.run': { key: 'pc:1', words: ['true'] },
    'capture.attach': { key: 'pc:1/0/0', from: 'now', link_type: 1, losses: true },
    hello: { protocol: 0 },
  }
  const isStream = (op: string) => streamOperations.some((it) => it === op)
  /** A stream, or its refusal, ends its connection. */
  const answer = async (op: string, input: unknown): Promise<Answer> => {
    if (!isStream(op)) return send(op, input)
    using own = await connection(data)
    return await own.send(op, input)
  }
  // A shutdown that is right is what it says; so is a program that is started.
  const isMeant = (op: string, input: unknown) =>
    op === 'shutdown' && typeof (input as { grace_ms?: unknown } | null)?.grace_ms === 'number'
  const junk = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom(
      -1,
      0,
      0.5,
      65_536,
      2 ** 31,
      1e308,
      '',
      '\u0000',
      '/',
      '..',
      null,
      [],
      {},
      [[[]]],
      'x'.repeat(5000),
    ),
  )
  const request = fc.constantFrom(...Object.keys(operationInputs)).chain((op) =>
    fc.tuple(
      fc.constant(op),
      fc.oneof(
        junk,
        fc.dictionary(fc.constantFrom('key', 'run', 'nio', 'grace_ms', 'listen', 'guest_port', 'netio'), junk),
        fc
          .tuple(fc.nat(40), junk)
          .map(([at, value]) => replaced(right[op as keyof typeof operationInputs] ?? {}, at, value)),
      ),
    ),
  )
  await fc.assert(
    fc.asyncProperty(request, async ([op, input]) => {
      fc.pre(!isMeant(op, input))
      expect(await answer(op, input)).toMatchObject({ id: 1 })
    }),
    { numRuns: 500 },
  )
  expect(await stillRunning()).toEqual(expect.arrayContaining(all))
  const { ports } = await client.call('port.report', { key: 'pc:1/0/0' })
  expect(ports).toHaveLength(1)
})

/** The value with the n-th of its members, at any depth, replaced. */
function replaced(value: unknown, at: number, by: unknown): unknown {
  let left = at % Math.max(1, membersOf(value))
  const walk = (it: unknown): unknown => {
    if (typeof it !== 'object' || it === null) return it
    const entries = Object.entries(it).map(([name, member]) => {
      left -= 1
      return [name, left === -1 ? by : walk(member)] as const
    })
    return Array.isArray(it) ? entries.map(([, member]) => member) : Object.fromEntries(entries)
  }
  return walk(value)
}

function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce<number>((sum, member) => sum + 1 + membersOf(member), 0)
}
