import { type DestinationStream, destination, pino } from 'pino'
import { logForPeople } from './pretty.ts'

/** The part of a logger that the rooms use. */
export interface Log {
  debug(details: object, message: string): void
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** Logs to standard error: as text on a terminal, else as JSON lines. Credentials are redacted. `level` can be changed later. */
export function createLog(level: string): Log & { level: string } {
  const redact = ['authorization', 'password', 'token', 'ticket'].flatMap((name) => [name, `*.${name}`])
  return pino({ level, redact, base: { pid: process.pid } }, target())
}

function target(): DestinationStream {
  const { stderr, env } = process
  if (stderr.isTTY !== true) return destination({ fd: 2, sync: true })
  // https://no-color.org: any text that is not empty.
  const hasColours = (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
  return logForPeople({ write: (text) => stderr.write(text), hasColours })
}
