import { counted } from '../../../src/lib/text/counted.ts'
import { escaped } from '../../../src/packets/addresses.ts'
import type { CapturedFrame } from '../../../src/packets/capture-reader.ts'
import { summarize } from '../../../src/packets/decode.ts'
import type { Sink } from './capture-sinks.ts'
import { colours } from './colours.ts'
import type { RowOutput } from './row-output.ts'

/** Widths of the columns, in characters; those of addresses grow to the longest one. */
const widths = { time: 11, link: 30, address: 15, protocol: 8 }
const defaultColumns = 80

interface RowOptions {
  readonly isTerminal: boolean
  readonly json: boolean
  /** The name of the link of a frame, where there are several. */
  readonly nameOf?: NameOf | undefined
}
type NameOf = (interfaceNumber: number) => string

/**
 * Frames as lines. A terminal that is slow gets fewer of them, and a line that says how many are left out; a pipe gets all, and holds
 * the stream up.
 */
export function rows(output: RowOutput, { isTerminal, json, nameOf }: RowOptions): Sink {
  const line = json ? (frame: CapturedFrame) => jsonLine(frame, nameOf) : columns(isTerminal, nameOf)
  let skipped = 0
  let unsaid = 0
  return {
    get skipped() {
      return skipped
    },
    async write({ frames }) {
      if (!isTerminal) {
        output.offer(frames.map((frame) => `${line(frame)}\n`).join(''))
        return output.written()
      }
      for (const frame of frames) {
        if (unsaid > 0 && output.offer(`${leftOut(unsaid)}\n`)) unsaid = 0
        if (unsaid === 0 && output.offer(`${line(frame)}\n`)) continue
        skipped += 1
        unsaid += 1
      }
    },
    async end() {
      if (unsaid > 0) await output.written()
      if (unsaid > 0) output.offer(`${leftOut(unsaid)}\n`)
      await output.written()
    },
  }
}

const leftOut = (frames: number): string =>
  colours.yellow(`... ${counted(frames, 'frame')} not shown: the terminal is slower than the link`)

function jsonLine(frame: CapturedFrame, nameOf: NameOf | undefined): string {
  const { source, destination, protocol, info } = summarize(frame)
  const time = frame.seconds + frame.nanos / 1e9
  const link = nameOf === undefined ? {} : { link: nameOf(frame.interfaceNumber) }
  return JSON.stringify({ time, ...link, length: frame.length, source, destination, protocol, info })
}

/** Lines in the columns of Wireshark, as wide as the terminal at most. */
function columns(isTerminal: boolean, nameOf: NameOf | undefined): (frame: CapturedFrame) => string {
  let begin: CapturedFrame | undefined
  let address = widths.address
  let longest = 0
  const linkOf = ({ interfaceNumber }: CapturedFrame): string => {
    if (nameOf === undefined) return ''
    const name = escaped(nameOf(interfaceNumber))
    const shown = name.length > widths.link ? `${name.slice(0, widths.link - 1)}…` : name
    longest = Math.max(longest, shown.length)
    return `${shown.padEnd(longest)}  `
  }
  return (frame) => {
    begin ??= frame
    const { source, destination, protocol, info } = summarize(frame)
    address = Math.max(address, source.length, destination.length)
    const micros = (frame.seconds - begin.seconds) * 1e6 + Math.trunc((frame.nanos - begin.nanos) / 1000)
    const time = (micros / 1e6).toFixed(6).padStart(widths.time)
    const head = `${time}  ${linkOf(frame)}${source.padEnd(address)}  ${destination.padEnd(address)}  `
    const name = protocol.padEnd(widths.protocol)
    const text = escaped(info.trimEnd())
    if (!isTerminal) return `${head}${name}  ${text}`
    const room = (process.stdout.columns || defaultColumns) - head.length - name.length - 2
    const shown = text.length > room ? `${text.slice(0, Math.max(0, room - 1))}…` : text
    const colour = info.includes('[Malformed') || info.startsWith('Bogus') ? colours.red : (plain: string) => plain
    return `${colours.dim(head.slice(0, widths.time))}${head.slice(widths.time)}${colours.cyan(name)}  ${colour(shown)}`
  }
}
