import { type DestinationStream, destination, pino } from 'pino'
import { logForPeople } from './pretty.ts'

/** The part of a logger that the rooms use. */
export interface Log {
  debug(details: object, message: string): void
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** To standard error: for people where that is a terminal, else JSON lines. Credentials never get into it. `level` can be changed later. */
export function createLog(level: string): Log & { level: string } {
  const secret = [
    'authorization',
    'password',
    'token',
    'ticket',
    '*.authorization',
    '*.password',
    '*.token',
    '*.ticket',
  ]
  return pino({ level, redact: secret, base: { pid: process.pid } }, whereTo())
}

function whereTo(): DestinationStream {
  const { stderr, env } = process
  if (stderr.isTTY !== true) return destination({ fd: 2, sync: true })
  // https://no-color.org: any text that is not empty.
  const hasColours = (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
  return logForPeople({ write: (text) => stderr.write(text), hasColours })
}
