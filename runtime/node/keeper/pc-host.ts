import { createSocket, type Socket } from 'node:dgram'
import { directoryFiles } from '../kinds/pc/embedded/directory-files.ts'
import { EmbeddedPc } from '../kinds/pc/embedded/embedded-pc.ts'
import { encodeFrame, type Frame, FrameReader, type FrameType, frameType } from './frames.ts'
import type { EmbeddedPcSpec } from './protocol.ts'

/** The process that all embedded pcs of a keeper share. It ends with its stdin, that is with the keeper. */
interface Hosted {
  readonly pc: EmbeddedPc
  readonly socket: Socket
}

const hosted = new Map<number, Hosted>()
const reader = new FrameReader()

const say = (type: FrameType, pc: number, payload?: Uint8Array | string) =>
  process.stdout.write(encodeFrame(type, pc, payload))

function take({ type, pc, payload }: Frame): void {
  switch (type) {
    case frameType.start:
      start(pc, JSON.parse(payload.toString()) as EmbeddedPcSpec).catch((error: Error) => {
        end(pc, undefined)
        say(frameType.failed, pc, error.message)
      })
      break
    case frameType.input:
      hosted.get(pc)?.pc.type(Uint8Array.from(payload))
      break
    case frameType.stop:
      end(pc, 0)
      break
  }
}

async function start(id: number, spec: EmbeddedPcSpec): Promise<void> {
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
    print: (bytes) => say(frameType.output, id, bytes),
    files,
    quit: () => end(id, 0),
  })
  // A plain view: a slice of a Buffer would not be a copy.
  socket.on('message', (frame) => pc.receive(new Uint8Array(frame.buffer, frame.byteOffset, frame.length)))
  hosted.set(id, { pc, socket })
  const script = await files.read(spec.script)
  say(frameType.started, id)
  await pc.boot(script)
}

/** Ends a pc; with a code the keeper is told. */
function end(id: number, code: number | undefined): void {
  const it = hosted.get(id)
  if (it === undefined) return
  hosted.delete(id)
  it.pc.close()
  it.socket.close()
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
