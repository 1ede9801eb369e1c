import { ApiError } from '../../../../../src/errors/api-error.ts'

/** How a command of VBoxManage ended, when not well. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure'
  /** The name of VirtualBox's own error, such as VBOX_E_OBJECT_NOT_FOUND; its words may be of any language. */
  readonly code: string | undefined
  readonly timedOut: boolean

  constructor(stderr: string, { timedOut = false }: { timedOut?: boolean } = {}) {
    super(stderr.slice(-4096))
    this.code = /\b(?:code|state:) (VBOX_E_\w+|NS_ERROR_\w+|E_\w+)/.exec(stderr)?.[1]
    this.timedOut = timedOut
  }
}

const failureOf = (error: unknown): CommandFailure | undefined =>
  error instanceof ApiError && error.cause instanceof CommandFailure ? error.cause : undefined

/** Whether VirtualBox knows no machine (or disk) of that id. */
export function isMissing(error: unknown): boolean {
  const failure = failureOf(error)
  if (failure === undefined) return false
  return failure.code === 'VBOX_E_OBJECT_NOT_FOUND' || failure.message.includes('Could not find a registered machine')
}

/** Whether somebody has the machine now; that may be VirtualBox itself, which lets go of it a moment after it has stopped. */
export const isLocked = (error: unknown): boolean => failureOf(error)?.code === 'VBOX_E_INVALID_OBJECT_STATE'

export const hasTimedOut = (error: unknown): boolean => failureOf(error)?.timedOut === true

/**
 * The line that says what went wrong. VBoxManage ends with where in its source that was ("Details:", "Context:"), which tells
 * nobody anything.
 */
export function complaintOf(stderr: string): string {
  const lines = stderr.split(/\r?\n/).map((line) => line.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ').trim())
  const said = lines.filter(
    (line) => line !== '' && !/^VBoxManage: (?:error: (?:Details|Context): |info: )/i.test(line),
  )
  const errors = said.filter((line) => errorMark.test(line))
  return (errors.at(-1) ?? said.at(-1) ?? '').replace(errorMark, '').slice(0, 400)
}

const errorMark = /^VBoxManage(?:\.exe)?: error: /i
