import { type Static, Type } from '@sinclair/typebox'

/*
 * A proxy ends a request without a byte of its answer after some time: Cloudflare after 120 s. Therefore the service begins a slow
 * answer early, for clients whose request has a header that announces support:
 *
 *   200, Content-Type: application/vnd.patchbay.late
 *   spaces, one from time to time, until there is an answer
 *   the head of the answer: a LateHead as one line of JSON
 *   the body of the answer, byte for byte
 *
 * HTTP has interim responses (1xx) for this, but `fetch` does not show them, and some proxies drop them.
 */

/** The request header of a client that supports late answers. */
export const lateHeader = 'X-Patchbay-Late'

/** The media type of a late answer. */
export const lateType = 'application/vnd.patchbay.late'

/** An answer without its body. */
export type LateHead = Static<typeof LateHead>
export const LateHead = Type.Object({
  status: Type.Integer({ minimum: 200, maximum: 599 }),
  headers: Type.Array(Type.Tuple([Type.String(), Type.String()]), { maxItems: 200 }),
})
