import { Duplex } from 'node:stream'
import { promisify } from 'node:util'
import { constants, deflateRaw } from 'node:zlib'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { giveBack } from '../../engine/storage/buffers.ts'

/** Bytes that are compressed at once: of less, the start of a compression is a part of its time that counts. */
const blockBytes = 2 ** 18
/** How far back deflate refers (RFC 1951, 2). */
const windowBytes = 2 ** 15
/** Blocks that are compressed at the same time. The threads of Node are four, and files need one. */
const atOnce = 3
/** An empty last block (RFC 1951, 3.2.6). */
const lastBlock = Uint8Array.of(3, 0)

const compress = promisify(deflateRaw)

/**
 * A raw deflate stream whose blocks are compressed in several threads, as pigz does: each begins with the window that the block before has
 * left, and ends at a whole byte. It is as long as that of `node:zlib`, which uses one thread.
 */
export const parallelDeflate = ({ level }: { readonly level: number }): Duplex =>
  Duplex.from((pieces: AsyncIterable<Uint8Array>) => deflated(pieces, level))

async function* deflated(pieces: AsyncIterable<Uint8Array>, level: number): AsyncGenerator<Uint8Array> {
  const running: Promise<Uint8Array>[] = []
  let dictionary: Uint8Array | undefined
  for await (const piece of gathered(pieces)) {
    const ofPiece: Promise<Uint8Array>[] = []
    for (let at = 0; at < piece.byteLength; at += blockBytes) {
      if (running.length >= atOnce) yield (await running.shift()) as Uint8Array
      const block = piece.subarray(at, at + blockBytes)
      const done = compress(block, {
        level,
        finishFlush: constants.Z_SYNC_FLUSH,
        chunkSize: maxLength(block.byteLength),
        ...(dictionary !== undefined && { dictionary }),
      })
      done.catch(ignore('it is awaited in its turn'))
      dictionary = block.byteLength < windowBytes ? undefined : Buffer.from(block.subarray(-windowBytes))
      running.push(done)
      ofPiece.push(done)
    }
    Promise.all(ofPiece).then(() => giveBack(piece), ignore('the failed block is awaited in its turn'))
  }
  for (const block of running) yield await block
  yield lastBlock
}

/** Pieces of at least a block, apart from the last one. */
async function* gathered(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  for await (const piece of pieces) {
    if (waiting.length === 0 && piece.byteLength >= blockBytes) {
      yield piece
      continue
    }
    waiting.push(piece)
    bytes += piece.byteLength
    if (bytes < blockBytes) continue
    yield Buffer.concat(waiting)
    ;[waiting, bytes] = [[], 0]
  }
  if (bytes > 0) yield Buffer.concat(waiting)
}

/** Most bytes of a compressed block (`deflateBound` of zlib), with those of its end. */
const maxLength = (bytes: number): number => bytes + (bytes >> 12) + (bytes >> 14) + 64
