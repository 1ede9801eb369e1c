import { destination, pino } from 'pino'

/** The part of a logger that the rooms use. */
export interface Log {
  debug(details: object, message: string): void
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** JSON lines on standard error; credentials never get into them. `level` can be changed later. */
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
  return pino({ level, redact: secret, base: { pid: process.pid } }, destination({ fd: 2, sync: true }))
}
