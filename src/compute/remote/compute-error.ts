import { Check } from '@sinclair/typebox/value'
import { ApiError } from '../../lib/errors/api-error.ts'
import { type ErrorCode, errorHeader } from '../../lib/errors/error-codes.ts'
import { ErrorBody } from '../../model/schema/fields.ts'
import { jsonIn } from './answer.ts'
import { requireAboutRequest } from './greeting.ts'
import { tolerant } from './tolerant.ts'
import type { ComputeAnswer } from './transport.ts'

/** Headers of an error that the client gets. */
const telling = ['content-range', 'range', 'retry-after']
const longestMessage = 4096
const longestCode = 100
const longestHeader = 100

/** The error answer of a compute as an error for the client. */
export function apiErrorOf(response: ComputeAnswer, text: string, name: string): ApiError {
  requireAboutRequest(response, name)
  const { status } = response
  const compute = `The compute ${name}`
  const said = jsonIn(text)
  const body = Check(tolerant(ErrorBody), said) ? said : undefined
  if (status < 400 || status > 599 || body === undefined) {
    const what = response.headers.get('content-type')?.split(';')[0]?.slice(0, 60) ?? 'content without a type'
    return new ApiError(502, `${compute} answered ${status} with ${what}, which is not a response of Patchbay`)
  }
  const message = body.message.slice(0, longestMessage)
  if (status === 500) return new ApiError(502, `${compute} failed: ${message}`)
  // Every answer of an endpoint has X-Route, also a 404 for a missing resource.
  if ((status === 404 || status === 405) && !response.headers.has('x-route')) {
    return new ApiError(501, `${compute} has no such operation: its version differs from this service`)
  }
  const headers = telling.flatMap((name) => {
    const value = response.headers.get(name)
    return value === null || value.length > longestHeader ? [] : [[name, value] as const]
  })
  const code = response.headers.get(errorHeader)?.slice(0, longestCode) as ErrorCode | undefined
  return new ApiError(status, message, {
    ...(code !== undefined && { code }),
    headers: Object.fromEntries(headers),
    ...(body.image !== undefined && { image: body.image.slice(0, longestMessage) }),
  })
}
