import { existsSync } from 'node:fs'
import { chmod, constants, open, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { ApiError, conflict } from '../../../../src/lib/errors/api-error.ts'
import { requireSpace, withDiskErrors } from '../../engine/storage/disk.ts'
import { boxOf, insideBox } from '../../os/sandbox/box.ts'
import { connectSocket } from '../../os/system/connect.ts'
import { socketPath } from '../../os/system/socket-path.ts'
import { memoryName, pathForEmulator } from './monitor-path.ts'
import type { MachineKindNode } from './properties.ts'
import type { Qmp } from './qmp.ts'

/** The file with kept memory in the directory of a node. After its next start the machine goes on (`started`), or waits for a resume (`suspended`). */
const fileOf = (state: MemoryState): string => `memory.${state}`
type MemoryState = 'started' | 'suspended'
const states = ['started', 'suspended'] as const

export const staleMemoryHint =
  'its memory from a snapshot may no longer fit its settings or the emulator: undo the changes, or stop the node to start without it'

const askMs = 10_000
/** The free space of the disk is checked each time this number of bytes was written. */
const spaceStep = 16 << 20
/** A stream has the memory, that of devices, and a few bytes of each page. An emulator that sends more is broken, or was taken over by its guest. */
const maxBytes = (ramMb: number): number => (2 * ramMb + 1024) * 2 ** 20

/** How the machine of a directory goes on from kept memory; undefined when it has none. */
export const memoryIn = (directory: string): MemoryState | undefined =>
  states.find((state) => existsSync(join(directory, fileOf(state))))

export async function dropMemory(directory: string): Promise<void> {
  for (const state of states) await rm(join(directory, fileOf(state)), { recursive: true, force: true })
}

interface Keep {
  readonly runDirectory: string
  /** Where the file is made. */
  readonly directory: string
  readonly state: MemoryState
  readonly signal: AbortSignal
  readonly minFreeMb: () => number
  /** Timeout of the whole. */
  readonly ms: number
}

/**
 * Lets a paused machine write its memory; the result: the number of bytes. The service receives it by a socket and writes the file, so that a full
 * disk is seen for certain, and the emulator needs no program or directory for it (QEMU `migrate`, also for states in files). 409, 507.
 */
export async function keepMemory(qmp: Qmp, node: MachineKindNode, options: Keep): Promise<number> {
  const { directory, state, minFreeMb, ms } = options
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(ms)])
  const socket = socketOf(node, options.runDirectory)
  const server = createServer()
  let size = 0
  const most = maxBytes(node.record.properties.ram)
  const counted = async function* (pieces: AsyncIterable<Buffer>) {
    for await (const piece of pieces) {
      const step = Math.floor(size / spaceStep)
      size += piece.length
      if (Math.floor(size / spaceStep) !== step) await requireSpace(directory, minFreeMb())
      if (size > most) throw conflict('the emulator writes more than its memory')
      yield piece
    }
  }
  try {
    signal.throwIfAborted()
    await using file = await open(join(directory, fileOf(state)), 'wx', 0o600)
    const { connection } = await listening(server, socket, signal)
    await prepare(qmp)
    const concluded = conclusion(qmp, ms)
    await qmp.execute('migrate', { uri: `unix:${socket.inside}` }, askMs)
    const peer = await connection
    await withDiskErrors('The memory', () => pipeline(peer, counted, file.createWriteStream(), { signal }))
    await concluded
    return size
  } catch (error) {
    await qmp.execute('migrate_cancel', {}, askMs).catch(ignore('it has failed already, or the emulator has ended'))
    if (error instanceof ApiError || !signal.aborted) throw error
    throw options.signal.aborted ? options.signal.reason : conflict(`its memory was not written within ${ms} ms`)
  } finally {
    server.close()
    await socket.remove()
  }
}

/** Lets a machine read its memory; it then waits for `cont`. A machine that cannot read it ends. */
export async function loadMemory(
  qmp: Qmp,
  node: MachineKindNode,
  { runDirectory, ms }: { readonly runDirectory: string; readonly ms: number },
): Promise<void> {
  const state = memoryIn(node.directory)
  if (state === undefined) throw conflict('The file with the memory of the machine is missing: start it again')
  const socket = socketOf(node, runDirectory)
  // The emulator may write to the directory: no link is followed, and no open waits for a writer of a FIFO.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  await using file = await withDiskErrors('The memory', () => open(join(node.directory, fileOf(state)), flags))
  if (!(await file.stat()).isFile()) throw conflict(`${fileOf(state)} is not a file`)
  try {
    await socket.remove()
    await prepare(qmp)
    const concluded = conclusion(qmp, ms)
    await qmp.execute('migrate-incoming', { uri: `unix:${socket.inside}` }, askMs)
    const { path, release } = socket.open()
    const peer = await connectSocket({ path }, askMs).finally(release)
    pipeline(file.createReadStream(), peer).catch(ignore('the emulator then says what it lacks, and ends'))
    await concluded
  } finally {
    await socket.remove()
  }
}

/** The socket for memory: in the box of a confined emulator, else in the directory of runtime files. */
function socketOf({ record: { node_id }, directory: cwd }: MachineKindNode, runDirectory: string) {
  const box = boxOf(runDirectory, node_id)
  const isConfined = existsSync(box)
  const [directory, name] = isConfined ? [box, 'memory'] : [runDirectory, memoryName(node_id)]
  return {
    /** The path by which the emulator knows it. */
    inside: isConfined ? join(insideBox, name) : pathForEmulator(directory, name, cwd),
    open: () => socketPath(directory, name),
    /** Only its emulator passes the box. */
    allow: () => (isConfined ? chmod(join(directory, name), 0o777) : undefined),
    remove: () => rm(join(directory, name), { recursive: true, force: true }),
  }
}

/** Listens for the one connection. */
async function listening(
  server: ReturnType<typeof createServer>,
  socket: ReturnType<typeof socketOf>,
  signal: AbortSignal,
): Promise<{ connection: Promise<Socket> }> {
  await socket.remove()
  const { path, release } = socket.open()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve)).finally(release)
  await socket.allow()
  const connection = new Promise<Socket>((resolve, reject) => {
    server.once('connection', resolve)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  connection.catch(ignore('it is awaited when the emulator was asked'))
  return { connection }
}

/** Makes the emulator report the end of a migration, and removes the limit of its rate. */
async function prepare(qmp: Qmp): Promise<void> {
  await qmp.execute('migrate-set-capabilities', { capabilities: [{ capability: 'events', state: true }] }, askMs)
  await qmp.execute('migrate-set-parameters', { 'max-bandwidth': 2 ** 40 }, askMs)
}

/** The end of the next migration; 409 with the reason of a failure. */
function conclusion(qmp: Qmp, ms: number): Promise<void> {
  const ends = ['completed', 'failed', 'cancelled']
  const concluded = qmp
    .nextEvent(({ event, data }) => event === 'MIGRATION' && ends.includes(String(data.status)), ms)
    .then(async ({ data: { status } }) => {
      if (status === 'completed') return
      const facts = await qmp.execute<{ 'error-desc'?: string }>('query-migrate', {}, askMs)
      throw conflict(`its memory: ${facts['error-desc'] ?? status}`)
    })
  concluded.catch(ignore('it is awaited, unless a command fails first'))
  return concluded
}
