import { Decompress } from 'fzstd'

/** Largest window, bytes: that of `zstd -d` without `--long` or `--memory`. It is memory that a frame asks for. */
export const maxWindowBytes = 2 ** 27
/** Largest block (RFC 8878, 3.1.1.2.4): bytes that one step makes. */
const maxBlockBytes = 2 ** 17
const magic = 0xfd2fb528
/** Skippable frames have 16 numbers (RFC 8878, 3.1.2). */
const skippable = 0x184d2a50
const repeated = 1

/**
 * The bytes of a stream of Zstandard (RFC 8878), block by block: a step makes at most 128 KiB. Throws for a stream that is damaged, or that
 * needs more memory than `maxWindowBytes`. For a runtime without zstd of its own. The caller limits the whole.
 */
export async function* unpackedZstd(packed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const bytes = new ByteReader(packed)
  for (;;) {
    const start = await bytes.upTo(4)
    if (start.length === 0) return
    const number = start.length === 4 ? word(start) : 0
    if ((number & 0xfffffff0) >>> 0 === skippable) await bytes.skip(word(await bytes.read(4)))
    else if (number === magic) yield* frame(start, bytes)
    else throw new Error('not a frame of Zstandard')
  }
}

/** The same as a stream, in the form of `DecompressionStream`. */
export class ZstdDecompressionStream {
  readonly writable: WritableStream<Uint8Array>
  readonly readable: ReadableStream<Uint8Array>

  constructor() {
    const packed = new TransformStream<Uint8Array, Uint8Array>()
    this.writable = packed.writable
    const pieces = unpackedZstd(packed.readable as unknown as AsyncIterable<Uint8Array>)
    this.readable = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const { done, value } = await pieces.next()
          if (done === true) controller.close()
          else controller.enqueue(value)
        },
        async cancel() {
          await pieces.return(undefined)
        },
      },
      { highWaterMark: 0 },
    )
  }
}

const word = (bytes: Uint8Array): number => new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true)

async function* frame(start: Uint8Array, bytes: ByteReader): AsyncGenerator<Uint8Array> {
  const made: Uint8Array[] = []
  const decoder = new Decompress((piece) => void (piece.length > 0 && made.push(piece)))
  const [descriptor = 0] = await bytes.read(1)
  const isSingle = (descriptor & 0x20) !== 0
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] as number
  const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6] as number
  const rest = await bytes.read((isSingle ? 0 : 1) + dictionaryBytes + sizeBytes)
  if (dictionaryBytes > 0) throw new Error('a dictionary is needed')
  const window = isSingle ? littleEndian(rest) + (sizeBytes === 2 ? 256 : 0) : windowOf(rest[0] ?? 0)
  if (window > maxWindowBytes) throw new Error(`a window of ${window} bytes is needed, more than ${maxWindowBytes}`)
  decoder.push(joined(start, Uint8Array.of(descriptor), rest))
  for (let isLast = false; !isLast; ) {
    const header = await bytes.read(3)
    const value = littleEndian(header)
    isLast = (value & 1) !== 0
    const size = value >> 3
    if (size > maxBlockBytes) throw new Error('a block is too large')
    const content = await bytes.read(((value >> 1) & 3) === repeated ? 1 : size)
    const checksum = isLast && (descriptor & 4) !== 0 ? await bytes.read(4) : new Uint8Array()
    decoder.push(joined(header, content, checksum), isLast)
    yield* made.splice(0)
  }
}

/** RFC 8878, 3.1.1.1.2. */
function windowOf(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3))
  return base + (base / 8) * (descriptor & 7)
}

const littleEndian = (bytes: Uint8Array): number => bytes.reduceRight((sum, byte) => sum * 256 + byte, 0)

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** Reads a given number of bytes of a stream of pieces. */
class ByteReader {
  readonly #pieces: AsyncIterator<Uint8Array>
  #piece = new Uint8Array()

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#pieces = pieces[Symbol.asyncIterator]()
  }

  /** So many bytes; fewer at the end of the stream. */
  async upTo(count: number): Promise<Uint8Array> {
    const found: Uint8Array[] = []
    let left = count
    while (left > 0 && (await this.#more())) {
      const part = this.#piece.subarray(0, left)
      this.#piece = this.#piece.subarray(part.length)
      found.push(part)
      left -= part.length
    }
    return joined(...found)
  }

  async read(count: number): Promise<Uint8Array> {
    const bytes = await this.upTo(count)
    if (bytes.length < count) throw new Error('it ends within a frame')
    return bytes
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) {
      if (!(await this.#more())) throw new Error('it ends within a frame')
      const length = Math.min(left, this.#piece.length)
      this.#piece = this.#piece.subarray(length)
      left -= length
    }
  }

  async #more(): Promise<boolean> {
    while (this.#piece.length === 0) {
      const { done, value } = await this.#pieces.next()
      if (done === true) return false
      this.#piece = new Uint8Array(value.buffer as ArrayBuffer, value.byteOffset, value.byteLength)
    }
    return true
  }
}
