import { ignore } from '../lib/async/ignore.ts'
import { type CapturedFrame, CaptureReader } from './capture-reader.ts'
import { type CaptureInterface, lossBlock, packetBlocks, pcapngHead } from './pcapng.ts'

/** A running capture of one interface: classic pcap, in which empty records report losses. */
export interface CapturedInterface extends CaptureInterface {
  readonly pcap: ReadableStream<Uint8Array>
}

/** How long a frame waits for earlier ones of other interfaces, ms: they come in pieces, from several computes. */
const holdMs = 200
/** Bytes of frames that one interface may have waiting; its source then has to wait, and counts what it loses. */
const maxHeldBytes = 1 << 20
/** Bytes of a piece of the result. */
const pieceBytes = 1 << 16

/** Frames that came at once. */
interface Batch {
  readonly frames: readonly CapturedFrame[]
  readonly bytes: number
  readonly arrived: number
  next: number
}

/** One interface: its frames that wait, and what became of it. */
interface Source {
  readonly reader: CaptureReader
  readonly batches: Batch[]
  bytes: number
  lostTold: number
  /** What is to be said of its end. */
  ending: string | undefined
  isOver: boolean
  /** Lets its reader go on. */
  resume: (() => void) | undefined
}

/**
 * Several captures as one in pcapng, with an interface for each, in the order of the times of the frames. A capture that ends does not end the
 * others: a comment at the statistics of its interface says so. Ends when all have ended; a cancel ends them.
 */
export function mergeCaptures(captures: readonly CapturedInterface[], comment: string): ReadableStream<Uint8Array> {
  const sources = captures.map(
    (): Source => ({
      ...{ reader: new CaptureReader(), batches: [], bytes: 0, lostTold: 0, isOver: false },
      ...{ ending: undefined, resume: undefined },
    }),
  )
  const readers = captures.map(({ pcap }) => pcap.getReader())
  let wake = () => {}
  let isCancelled = false
  /** What had come to this process by this time is in the batches. */
  let settledAt = performance.now()

  async function read(index: number): Promise<void> {
    const [source, reader] = [sources[index] as Source, readers[index] as ReadableStreamDefaultReader<Uint8Array>]
    try {
      for (;;) {
        if (source.bytes > maxHeldBytes)
          await new Promise<void>((resolve) => {
            source.resume = resolve
          })
        const { done, value } = await reader.read()
        if (done) break
        const read = source.reader.push(value)
        if (read.length > 0) {
          // Whatever the source calls it.
          const frames = read.map((it) => (it.interfaceNumber === index ? it : { ...it, interfaceNumber: index }))
          const batch = { frames, bytes: value.length, arrived: performance.now(), next: 0 }
          source.batches.push(batch)
          source.bytes += batch.bytes
        }
        wake()
      }
      source.ending = 'the link is gone'
    } catch (error) {
      source.ending = error instanceof Error ? error.message : String(error)
      void reader.cancel().catch(ignore('the capture has failed already'))
    }
    source.isOver = true
    wake()
  }

  /** The source with the earliest frame that waits. */
  function earliest(): Source | undefined {
    let found: Source | undefined
    let [seconds, nanos] = [Number.POSITIVE_INFINITY, 0]
    for (const source of sources) {
      const batch = source.batches[0]
      const frame = batch?.frames[batch.next]
      if (frame === undefined) continue
      if (frame.seconds > seconds || (frame.seconds === seconds && frame.nanos >= nanos)) continue
      ;[found, seconds, nanos] = [source, frame.seconds, frame.nanos]
    }
    return found
  }

  /** The next frames, as long as none can be earlier; and for how long to wait when there are none, ms. */
  function take(): { frames: readonly CapturedFrame[]; waitMs: number | undefined } {
    const frames: CapturedFrame[] = []
    const isComplete = () => sources.every(({ isOver, batches }) => isOver || batches.length > 0)
    for (let bytes = 0; bytes < pieceBytes; ) {
      const source = earliest()
      const batch = source?.batches[0]
      if (source === undefined || batch === undefined) break
      const waitMs = batch.arrived + holdMs - settledAt
      if (waitMs > 0 && source.bytes <= maxHeldBytes && !isComplete()) return { frames, waitMs }
      const frame = batch.frames[batch.next++] as CapturedFrame
      bytes += frame.bytes.length + 32
      frames.push(frame)
      if (batch.next < batch.frames.length) continue
      source.batches.shift()
      source.bytes -= batch.bytes
      source.resume?.()
    }
    return { frames, waitMs: undefined }
  }

  /** Losses and ends that are not said yet. */
  const news = (): Uint8Array[] =>
    sources.flatMap((source, index) => {
      const { reader, isOver, batches, ending } = source
      const ended = isOver && batches.length === 0 ? ending : undefined
      if (reader.lost === source.lostTold && ended === undefined) return []
      source.lostTold = reader.lost
      if (ended !== undefined) source.ending = undefined
      return [lossBlock(index, reader.lost, ended === undefined ? undefined : `the capture ended: ${ended}`)]
    })

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(pcapngHead(captures, comment))
        for (const index of sources.keys()) void read(index)
      },
      async pull(controller) {
        while (!isCancelled) {
          const changed = new Promise<void>((resolve) => {
            wake = resolve
          })
          const { frames, waitMs } = take()
          const blocks = news()
          if (frames.length > 0) controller.enqueue(packetBlocks(frames))
          for (const bytes of blocks) controller.enqueue(bytes)
          if (frames.length > 0 || blocks.length > 0) return
          if (sources.every(({ isOver, batches }) => isOver && batches.length === 0)) return controller.close()
          const now = performance.now()
          const left = waitMs === undefined ? undefined : waitMs - (now - settledAt)
          if (left !== undefined && left <= 0) {
            // A busy process may not have read yet what came meanwhile.
            await new Promise((resolve) => setTimeout(resolve))
            settledAt = now
            continue
          }
          const timer = left === undefined ? undefined : setTimeout(() => wake(), left)
          await changed
          clearTimeout(timer)
        }
      },
      async cancel() {
        isCancelled = true
        wake()
        for (const { resume } of sources) resume?.()
        await Promise.allSettled(readers.map((reader) => reader.cancel()))
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 4 * pieceBytes }),
  )
}
