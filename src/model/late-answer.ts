import { type Static, Type } from '@sinclair/typebox'

/*
 * A proxy cuts a request whose answer shows no byte for some time: Cloudflare after 120 s. So an answer that takes its time is
 * begun early, for those who say by a header of their request that they understand it:
 *
 *   200, Content-Type: application/vnd.patchbay.late
 *   spaces, one from time to time, until there is an answer
 *   the head of the answer: a LateHead as one line of JSON
 *   the body of the answer, byte for byte
 *
 * Interim responses (1xx) would be the way of HTTP, but `fetch` shows none, and proxies count or drop them as they like.
 */

/** The header of a request by which its sender says that it understands late answers. */
export const lateHeader = 'X-Patchbay-Late'

/** What an answer is that was begun before it was known. */
export const lateType = 'application/vnd.patchbay.late'

/** An answer without its body. */
export type LateHead = Static<typeof LateHead>
export const LateHead = Type.Object({
  status: Type.Integer({ minimum: 200, maximum: 599 }),
  headers: Type.Array(Type.Tuple([Type.String(), Type.String()]), { maxItems: 200 }),
})
