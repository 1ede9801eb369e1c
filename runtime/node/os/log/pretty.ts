import { inspect } from 'node:util'
import { escapeUnsafe } from '../../../../src/lib/text/escape.ts'

/** The destination of the lines, and whether it shows colours. */
export type Terminal = { write(text: string): unknown; readonly hasColours: boolean }

const levels: Readonly<Record<number, readonly [word: string, colour: number]>> = {
  20: ['debug', 90],
  30: ['info', 32],
  40: ['warn', 33],
  50: ['error', 31],
  60: ['fatal', 31],
}
/** Members that are not shown as details: every line has them, or they are shown in another way. */
const withoutDetails = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'err'])

/** Writes the JSON lines of the log as text: time, level, message, details. */
export function logForPeople({ write, hasColours }: Terminal): { write(line: string): void } {
  const paint = (text: string, code: number) => (hasColours ? `\u001b[${code}m${text}\u001b[0m` : text)
  return {
    write(line) {
      let entry: Record<string, unknown>
      try {
        entry = JSON.parse(line) as Record<string, unknown>
      } catch {
        write(line)
        return
      }
      const [word, colour] = levels[Number(entry.level)] ?? ['log', 0]
      const details = Object.entries(entry)
        .filter(([name]) => !withoutDetails.has(name))
        .map(([name, value]) => paint(` ${name}=${plain(value)}`, 90))
      const time = new Date(Number(entry.time)).toTimeString().slice(0, 8)
      write(
        `${paint(time, 90)} ${paint(word.padEnd(5), colour)} ${visible(entry.msg)}${details.join('')}${fault(entry.err)}\n`,
      )
    },
  }
}

/** The stack trace of an error, for the lines below the message. */
function fault(error: unknown): string {
  if (error === null || typeof error !== 'object') return ''
  const { stack, message } = error as { stack?: unknown; message?: unknown }
  const text = typeof stack === 'string' ? stack : String(message)
  return text
    .split('\n')
    .map((line) => `\n      ${visible(line.trim())}`)
    .join('')
}

function plain(value: unknown): string {
  if (typeof value === 'number') return String(Math.round(value * 100) / 100)
  if (typeof value === 'string' && /^[\w./:@{}-]+$/.test(value)) return value
  return escapeUnsafe(inspect(value, { breakLength: Number.POSITIVE_INFINITY }))
}

/** Text of guests and clients must not control the terminal. */
const visible = (value: unknown): string => escapeUnsafe(String(value ?? ''))
