import { AsyncLocalStorage } from 'node:async_hooks'
import { createSocket, type Socket } from 'node:dgram'
import type { EmbeddedPcSpec } from '../keeper-protocol/protocol.ts'
import { EmbeddedPc } from '../simulator/embedded-pc.ts'
import { directoryFiles } from '../simulator/stack/directory-files.ts'
import { TurnScheduler } from '../simulator/stack/turns.ts'
import { build } from '../system/version.ts'
import { encodeFrame, exitOfReplaced, type Frame, FrameReader, type FrameType, frameType } from './frames.ts'

// These messages are of one build: the keeper that started us may have been there before our files were replaced.
if (process.argv[2] !== undefined && process.argv[2] !== build) process.exit(exitOfReplaced)

/** The process that all embedded pcs of a keeper share. It ends with its stdin, that is with the keeper. */
interface Hosted {
  readonly pc: EmbeddedPc
  readonly socket: Socket
  /** What was typed and has not had its turn. Bounded by the keeper, which sends no more until it is told of what was taken. */
  readonly typed: Buffer[]
  /** What the pc has shown in this turn. */
  shown: Uint8Array[]
  shownBytes: number
  isHeld: boolean
  /** Whether its input has a turn to come. */
  isWaiting: boolean
}

/** So much of what was typed is read in one turn. */
const turnBytes = 1024
/** Output is sent at the end of a turn, or when it has grown to this. */
const maxShownBytes = 64 * 1024

const hosted = new Map<number, Hosted>()
const reader = new FrameReader()
const turns = new TurnScheduler()
/** The number of the pc that something is done for, also in what it does later. */
const current = new AsyncLocalStorage<number>()

const say = (type: FrameType, pc: number, payload?: Uint8Array | string) =>
  process.stdout.write(encodeFrame(type, pc, payload))

function take({ type, pc, payload }: Frame): void {
  switch (type) {
    case frameType.start:
      current.run(pc, () => {
        start(pc, payload.toString()).catch((error: Error) => {
          end(pc, undefined)
          say(frameType.failed, pc, error.message)
        })
      })
      break
    case frameType.input: {
      const it = hosted.get(pc)
      if (it === undefined) break
      it.typed.push(Buffer.from(payload))
      readLater(pc, it)
      break
    }
    case frameType.stop:
      end(pc, 0)
      break
    case frameType.hold:
    case frameType.release: {
      const it = hosted.get(pc)
      if (it === undefined) break
      it.isHeld = type === frameType.hold
      it.pc.hold(it.isHeld)
      readLater(pc, it)
      break
    }
    case frameType.areYouThere:
      say(frameType.there, pc)
      break
  }
}

async function start(id: number, specText: string): Promise<void> {
  const spec = JSON.parse(specText) as EmbeddedPcSpec
  const socket = createSocket('udp4')
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.bind({ port: spec.guest_port, address: '127.0.0.1', exclusive: true }, () => {
      socket.connect(spec.switch_port, '127.0.0.1', () => {
        socket.off('error', reject)
        resolve()
      })
    })
  }).catch((error: Error) => {
    socket.close()
    throw error
  })
  // A switch that is not there yet refuses (ICMP); the wire is then silent, as one without a link is.
  socket.on('error', () => {})
  const files = directoryFiles(spec.directory)
  const pc = new EmbeddedPc({
    mac: spec.mac,
    lport: spec.guest_port,
    rhost: '127.0.0.1',
    rport: spec.switch_port,
    send: (frame) => socket.send(frame),
    print: (bytes) => show(id, it, bytes),
    files,
    quit: () => end(id, 0),
    turn: () => turns.take(),
  })
  const it: Hosted = { pc, socket, typed: [], shown: [], shownBytes: 0, isHeld: false, isWaiting: false }
  // A plain view: a slice of a Buffer would not be a copy.
  socket.on('message', (frame) => pc.receive(new Uint8Array(frame.buffer, frame.byteOffset, frame.length)))
  hosted.set(id, it)
  const script = await files.read(spec.script).catch((error: Error) => `echo ${error.message}`)
  say(frameType.started, id)
  await pc.boot(script)
}

/** Has the pc read what was typed, a piece at every turn of it. */
function readLater(id: number, it: Hosted): void {
  if (it.isWaiting || it.isHeld || it.typed.length === 0) return
  it.isWaiting = true
  turns.add(() => {
    try {
      current.run(id, () => read(id, it))
    } catch (error) {
      failed(id, error)
    }
  })
}

function read(id: number, it: Hosted): void {
  it.isWaiting = false
  const [first] = it.typed
  if (first === undefined || it.isHeld || hosted.get(id) !== it) return
  const piece = first.subarray(0, turnBytes)
  if (piece.length < first.length) it.typed[0] = first.subarray(piece.length)
  else it.typed.shift()
  const taken = Buffer.allocUnsafe(4)
  taken.writeUInt32LE(piece.length)
  say(frameType.taken, id, taken)
  readLater(id, it)
  it.pc.type(Uint8Array.from(piece))
}

function show(id: number, it: Hosted, bytes: Uint8Array): void {
  if (it.shown.length === 0) setImmediate(() => flush(id, it))
  it.shown.push(bytes)
  it.shownBytes += bytes.length
  if (it.shownBytes >= maxShownBytes) flush(id, it)
}

function flush(id: number, it: Hosted): void {
  const { shown } = it
  if (it.shownBytes === 0) return
  it.shown = []
  it.shownBytes = 0
  for (const bytes of shown.length === 1 ? shown : [Buffer.concat(shown)]) say(frameType.output, id, bytes)
}

/** Ends a pc; with a code the keeper is told. */
function end(id: number, code: number | undefined): void {
  const it = hosted.get(id)
  if (it === undefined) return
  hosted.delete(id)
  flush(id, it)
  try {
    it.pc.close()
    it.socket.close()
  } catch (error) {
    process.stderr.write(`the end of embedded pc ${id}: ${(error as Error).stack}\n`)
  }
  if (code !== undefined) say(frameType.ended, id, String(code))
}

process.stdin.on('data', (bytes: Buffer) => {
  for (const frame of reader.push(bytes)) take(frame)
})
process.stdin.on('end', () => process.exit(0))
process.stdin.on('error', () => process.exit(0))
process.stdout.on('error', () => process.exit(0))
// Ctrl-C in the terminal of the service is not for the lab.
process.on('SIGINT', () => {})
// A fault in the work of one pc is the end of that one; without a pc it is a fault of all of this.
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => {
    failed(current.getStore(), error)
  })
}

function failed(pc: number | undefined, error: unknown): void {
  process.stderr.write(`embedded pc ${pc}: ${error instanceof Error ? error.stack : String(error)}\n`)
  if (pc === undefined) process.exit(1)
  end(pc, 1)
}
