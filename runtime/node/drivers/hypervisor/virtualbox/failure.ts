import { ApiError } from '../../../../../src/lib/errors/api-error.ts'

/** A failed command of VBoxManage. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure'
  /** The error code of VirtualBox, such as VBOX_E_OBJECT_NOT_FOUND; the error text may be in any language. */
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

/** Whether VirtualBox has no VM or disk of that id. */
export function isMissing(error: unknown): boolean {
  const failure = failureOf(error)
  if (failure === undefined) return false
  return failure.code === 'VBOX_E_OBJECT_NOT_FOUND' || failure.message.includes('Could not find a registered machine')
}

/** Whether a session locks the VM. VirtualBox itself holds the lock until shortly after the stop. */
export const isLocked = (error: unknown): boolean => failureOf(error)?.code === 'VBOX_E_INVALID_OBJECT_STATE'

export const hasTimedOut = (error: unknown): boolean => failureOf(error)?.timedOut === true

/** The line with the reason. VBoxManage also prints its source location ("Details:", "Context:"), which is dropped. */
export function errorText(stderr: string): string {
  const lines = stderr.split(/\r?\n/).map((line) => line.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ').trim())
  const useful = lines.filter(
    (line) => line !== '' && !/^VBoxManage: (?:error: (?:Details|Context): |info: )/i.test(line),
  )
  const errors = useful.filter((line) => errorMark.test(line))
  return (errors.at(-1) ?? useful.at(-1) ?? '').replace(errorMark, '').slice(0, 400)
}

const errorMark = /^VBoxManage(?:\.exe)?: error: /i
