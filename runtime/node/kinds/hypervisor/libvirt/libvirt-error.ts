import { ApiError } from '../../../../../src/errors/api-error.ts'

/**
 * `unreachable`: no libvirt answers at the URI; `timeout`: somebody is there and says nothing; `refused`: libvirt answered with an
 * error; `closed`: the connection ended before the answer; `protocol`: what came is not libvirt's protocol.
 */
export type LibvirtErrorCode = 'unreachable' | 'timeout' | 'refused' | 'closed' | 'protocol'

/** Numbers of libvirt's own errors (virterror.h). */
export const libvirtErrors = { noDomain: 42, operationInvalid: 55 } as const

/** What libvirt did not do; 409 with its words. */
export class LibvirtError extends ApiError {
  readonly code: LibvirtErrorCode
  /** libvirt's number of what it refused. */
  readonly number: number | undefined

  constructor(code: LibvirtErrorCode, message: string, options: ErrorOptions & { number?: number } = {}) {
    super(409, message, options)
    this.code = code
    this.number = options.number
  }
}

/** Whether libvirt refused something for that reason. */
export const isRefusal = (error: unknown, number: number): boolean =>
  error instanceof LibvirtError && error.number === number

/** Whether nobody is at the socket at all. */
export function isAbsence(error: unknown): boolean {
  if (!(error instanceof LibvirtError) || error.code !== 'unreachable') return false
  const { code = '' } = (error.cause ?? {}) as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ECONNREFUSED'
}
