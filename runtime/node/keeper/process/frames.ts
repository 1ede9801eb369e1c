/** Exit code of a process of embedded pcs whose build is not its keeper's, because the program was upgraded. */
export const exitOfReplaced = 4

/**
 * Messages between the keeper and the process of the embedded pcs, over its stdin and stdout:
 * length of the rest (4 bytes, little-endian), type (1), number of the pc (4), payload.
 */
export type FrameType = (typeof frameType)[keyof typeof frameType]
export const frameType = {
  /** `wait`, `goOn`: who reads the console is behind, or has caught up. */
  ...({ start: 1, input: 2, stop: 3, hold: 4, release: 5, areYouThere: 6, wait: 7, goOn: 8 } as const),
  /** `taken`: the number of input bytes that the pc has read (4 bytes, little-endian). */
  ...({ started: 10, failed: 11, output: 12, ended: 13, taken: 14, there: 15 } as const),
} as const

export type PcHostFrame = { readonly type: number; readonly pc: number; readonly payload: Buffer }

const headBytes = 9
/** Pieces of console output are far shorter: a longer frame means a broken stream. */
const maxBytes = 1 << 20

export function encodeFrame(type: FrameType, pc: number, payload: Uint8Array | string = ''): Buffer {
  const body = typeof payload === 'string' ? Buffer.from(payload) : payload
  const frame = Buffer.allocUnsafe(headBytes + body.length)
  frame.writeUInt32LE(5 + body.length, 0)
  frame.writeUInt8(type, 4)
  frame.writeUInt32LE(pc, 5)
  frame.set(body, headBytes)
  return frame
}

/** Cuts the chunks of a byte stream into frames. Throws on an impossible length. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0)

  push(bytes: Buffer): PcHostFrame[] {
    let buffer = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const frames: PcHostFrame[] = []
    while (buffer.length >= 4) {
      const length = buffer.readUInt32LE(0)
      if (length < 5 || length > maxBytes) throw new Error(`a frame of ${length} bytes`)
      if (buffer.length < 4 + length) break
      const payload = buffer.subarray(headBytes, 4 + length)
      frames.push({ type: buffer.readUInt8(4), pc: buffer.readUInt32LE(5), payload })
      buffer = buffer.subarray(4 + length)
    }
    this.#rest = buffer
    return frames
  }
}
