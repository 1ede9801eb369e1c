import { createSocket, type Socket } from 'node:dgram'
import { build } from '../../os/system/version.ts'
import type { EmbeddedPcSpec } from '../protocol/protocol.ts'
import { EmbeddedPc } from '../simulator/embedded-pc.ts'
import { directoryFiles, type PcFiles } from '../simulator/stack/directory-files.ts'
import { TurnScheduler } from '../simulator/stack/turns.ts'
import { encodeFrame, exitOfReplaced, FrameReader, type FrameType, frameType, type PcHostFrame } from './frames.ts'
import { turnLimitMs, Watchdog } from './watchdog.ts'

// The messages may differ between builds. The keeper may have started before an upgrade replaced these files.
if (process.argv[2] !== undefined && process.argv[2] !== build) process.exit(exitOfReplaced)

/** A pc in the process that all embedded pcs of a keeper share. The process ends when its stdin ends, which means that the keeper has. */
interface Hosted {
  readonly pc: EmbeddedPc
  readonly socket: Socket
  /** Input that waits for a turn. The keeper limits it: it sends more only after `taken`. */
  readonly typed: Buffer[]
  /** Output of the current turn. */
  shown: Uint8Array[]
  shownBytes: number
  isOver: boolean
  isHeld: boolean
  /** The reader of its console is behind. */
  isAhead: boolean
  /** Whether a turn for the input is scheduled. */
  isWaiting: boolean
}

/** Input bytes that one turn reads. */
const turnBytes = 1024
/** Output is sent after a turn, in pieces of at most this size, bytes. */
const pieceBytes = 64 * 1024
/** Maximum output of one turn, bytes; the rest is dropped. The keeper would disconnect console clients that cannot keep up. */
const maxShownBytes = 128 * 1024

const hosted = new Map<number, Hosted>()
const reader = new FrameReader()
const watchdog = new Watchdog()
/** All work of a pc runs in its own turns, because it may hang or throw. */
const turns = new TurnScheduler((pc) => watchdog.began(pc))
/** The owner of turns that belong to this process itself. */
const ourselves = 0

const say = (type: FrameType, pc: number, payload?: Uint8Array | string) =>
  process.stdout.write(encodeFrame(type, pc, payload))

function handle({ type, pc, payload }: PcHostFrame): void {
  switch (type) {
    case frameType.start:
      // In a turn: an earlier pc that is being stopped may still have the port.
      turns.add(pc, () => {
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
      turns.add(pc, () => end(pc, 0))
      break
    case frameType.hold:
    case frameType.release:
      turns.add(pc, () => hold(pc, type === frameType.hold))
      break
    case frameType.wait:
    case frameType.goOn:
      turns.add(pc, () => wait(pc, type === frameType.wait))
      break
    case frameType.areYouThere:
      say(frameType.there, pc)
      // Later: Node may open the inspector a second time before this turn of the event loop ends.
      setImmediate(settle)
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
  // Without a switch the kernel answers ICMP port unreachable; the frame is then lost, as without a link.
  socket.on('error', () => {})
  const files = filesInTurns(id, directoryFiles(spec.directory))
  await turns.acquire(id)
  const pc = new EmbeddedPc({
    name: spec.name,
    mac: spec.mac,
    lport: spec.guest_port,
    rhost: '127.0.0.1',
    rport: spec.switch_port,
    send: (frame) => {
      if (!it.isOver) socket.send(frame)
    },
    print: (bytes) => show(id, it, bytes),
    files,
    quit: () => end(id, 0),
    turn: () => turns.acquire(id),
    startTimer(work, ms) {
      const inTime = () => {
        if (!it.isOver) work()
      }
      return turns.startTimer(id, inTime, ms)
    },
  })
  const it: Hosted = {
    pc,
    socket,
    typed: [],
    shown: [],
    shownBytes: 0,
    isOver: false,
    isHeld: false,
    isAhead: false,
    isWaiting: false,
  }
  socket.on('message', (frame, from) => {
    // Anybody may have sent before `connect`.
    if (from.port !== spec.switch_port) return
    watchdog.began(id)
    // A Uint8Array: `slice` of a Buffer makes no copy.
    pc.receive(new Uint8Array(frame.buffer, frame.byteOffset, frame.length))
  })
  hosted.set(id, it)
  const script = await files.read(spec.script).catch((error: Error) => `echo ${error.message}`)
  say(frameType.started, id)
  await pc.boot(script)
}

function settle(): void {
  watchdog.began(ourselves)
  const ended = watchdog.settle()
  if (ended === undefined) return
  fail(ended.owner, `its simulation hung (${turnLimitMs} ms of processor time in one turn)`, ended.stack)
}

/** File access for a pc. The pc resumes in a turn of its own. */
function filesInTurns(pc: number, files: PcFiles): PcFiles {
  const inTurn = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } finally {
      await turns.acquire(pc)
    }
  }
  return { read: (name) => inTurn(files.read(name)), write: (name, text) => inTurn(files.write(name, text)) }
}

function hold(id: number, isHeld: boolean): void {
  const it = hosted.get(id)
  if (it === undefined) return
  it.isHeld = isHeld
  it.pc.hold(isHeld)
  readLater(id, it)
}

function wait(id: number, isAhead: boolean): void {
  const it = hosted.get(id)
  if (it === undefined) return
  it.isAhead = isAhead
  it.pc.wait(isAhead)
  readLater(id, it)
}

/** Schedules the input of a pc, one piece for each turn. */
function readLater(id: number, it: Hosted): void {
  if (it.isWaiting || it.isHeld || it.isAhead || it.typed.length === 0) return
  it.isWaiting = true
  turns.add(id, () => read(id, it))
}

function read(id: number, it: Hosted): void {
  it.isWaiting = false
  const [first] = it.typed
  if (first === undefined || it.isHeld || it.isAhead || hosted.get(id) !== it) return
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
  if (it.isOver || it.shownBytes + bytes.length > maxShownBytes) return
  if (it.shown.length === 0) {
    setImmediate(() => {
      watchdog.began(ourselves)
      flush(id, it)
    })
  }
  it.shown.push(bytes)
  it.shownBytes += bytes.length
}

/** Runs outside the turn of the pc: the watchdog must not interrupt a write to the shared stream. */
function flush(id: number, it: Hosted): void {
  const { shown } = it
  const [first] = shown
  if (first === undefined) return
  it.shown = []
  it.shownBytes = 0
  const all = shown.length === 1 ? first : Buffer.concat(shown)
  for (let at = 0; at < all.length; at += pieceBytes) say(frameType.output, id, all.subarray(at, at + pieceBytes))
}

/** Ends a pc. With a code the keeper gets the `ended` message. */
function end(id: number, code: number | undefined): void {
  const it = hosted.get(id)
  if (it === undefined) return
  hosted.delete(id)
  it.isOver = true
  flush(id, it)
  if (code !== undefined) say(frameType.ended, id, String(code))
  it.socket.close()
  // Last, and in a turn: this may fail as well.
  turns.add(id, () => it.pc.close())
}

/** Ends a pc that failed, and shows the reason on its console. */
function fail(id: number, reason: string, stack: string): void {
  process.stderr.write(`embedded pc ${id} was ended: ${reason}\n${stack}\n`)
  const it = hosted.get(id)
  if (it === undefined) return
  const words = Buffer.from(`\r\nThis pc was ended: ${reason}. Other pcs keep running\r\n`)
  it.shown.push(words)
  end(id, 1)
}

process.stdin.on('data', (bytes: Buffer) => {
  watchdog.began(ourselves)
  for (const frame of reader.push(bytes)) handle(frame)
})
process.stdin.on('end', () => process.exit(0))
process.stdin.on('error', () => process.exit(0))
process.stdout.on('error', () => process.exit(0))
// Ctrl-C in the service's terminal must not end the lab.
process.on('SIGINT', () => {})
// A fault in the turn of a pc ends that pc; any other fault ends the process.
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => {
    const { message, stack = message } = error instanceof Error ? error : new Error(String(error))
    if (watchdog.owner === ourselves) {
      process.stderr.write(`the process of the embedded pcs: ${stack}\n`)
      process.exit(1)
    }
    fail(watchdog.owner, `its simulation failed (${message})`, stack)
  })
}
