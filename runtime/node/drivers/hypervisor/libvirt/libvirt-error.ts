import { ApiError } from '../../../../../src/lib/errors/api-error.ts'

/**
 * `unreachable`: no connection; `timeout`: no answer in time; `refused`: libvirt answered with an error; `closed`: the connection
 * ended before the answer; `protocol`: the answer is not of the protocol.
 */
type LibvirtFailure = 'unreachable' | 'timeout' | 'refused' | 'closed' | 'protocol'

/** Error numbers of libvirt (virterror.h). */
export const libvirtErrors = { noDomain: 42, operationInvalid: 55 } as const

/** A failed call; 409 with the message of libvirt. */
export class LibvirtError extends ApiError {
  readonly reason: LibvirtFailure
  /** The error number of libvirt. */
  readonly number: number | undefined

  constructor(reason: LibvirtFailure, message: string, options: ErrorOptions & { number?: number } = {}) {
    super(409, message, options)
    this.reason = reason
    this.number = options.number
  }
}

/** Whether libvirt refused a call with that error number. */
export const isRefusal = (error: unknown, number: number): boolean =>
  error instanceof LibvirtError && error.number === number

/** Whether no daemon listens on the socket. */
export function isAbsence(error: unknown): boolean {
  if (!(error instanceof LibvirtError) || error.reason !== 'unreachable') return false
  const { code = '' } = (error.cause ?? {}) as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ECONNREFUSED'
}
