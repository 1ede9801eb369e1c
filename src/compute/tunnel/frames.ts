import type { Static, TSchema } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'

/**
 * The tunnel: requests and websockets of a gateway to a compute, over one websocket that the compute opened.
 *
 * Text messages are heartbeats: `ping` is answered with `pong`, which a runtime can do while the program sleeps.
 * Every binary message is one frame: kind (1 byte), flags (1), number of the stream (4, big-endian), payload.
 *
 * - HELLO (stream 0, JSON): the compute sends one first. The gateway answers with its own when it accepts the compute. A gateway
 *   that has lost its streams sends its HELLO again; the compute then drops all streams too, and answers with its HELLO.
 * - OPEN (JSON): a request; only the gateway opens streams, with rising numbers. HEAD (JSON): the answer to it.
 * - DATA: a piece of a body, 32 KiB at most. On a websocket: a piece of a message, with the flags TEXT and LAST.
 * - WINDOW (4 bytes, big-endian): grants credit. A DATA frame costs its payload and 16; the HELLO of each end has the first
 *   credit of a stream. Data beyond the credit ends the tunnel.
 * - END: no more DATA follows; on a websocket with the close code and reason (JSON). None is sent after an OPEN or HEAD that says
 *   that it has no body.
 * - ANSWER: HEAD, a short body and END in one frame: the length of the JSON of the HEAD (4 bytes, big-endian), the JSON, the body
 *   (32 KiB at most; it costs no credit). Only for a gateway whose HELLO has `answers`.
 * - BATCH: ANSWERs of a compute, or OPENs of a gateway, that were ready in the same turn, each with its length before it (4 bytes, big-endian);
 *   256 KiB at most. Only for an end whose HELLO has `batches`.
 * - RESET (JSON): the sender ends the stream in both directions; after its END: it reads no more.
 *
 * Frames of a stream that has ended are ignored. A malformed message ends the tunnel with 4400. So do, with 4429, more messages of a compute beside
 * the data of open streams than its gateway's requests and the time allow: no credit covers them.
 */
export const frameKinds = {
  hello: 1,
  open: 2,
  head: 3,
  data: 4,
  window: 5,
  end: 6,
  reset: 7,
  answer: 8,
  batch: 9,
} as const
export type FrameKind = (typeof frameKinds)[keyof typeof frameKinds]
export const frameFlags = { text: 1, last: 2 } as const

/** Close codes of a tunnel. */
export const resetCodes = {
  malformed: 4400,
  forbidden: 4403,
  otherProtocol: 4406,
  silent: 4408,
  /** The compute has joined again, or is connected with another token than the new connection. */
  replaced: 4409,
  removed: 4410,
  flooding: 4429,
} as const

/** Most bytes of a DATA frame. */
export const maxPieceBytes = 32 * 1024
/** The cost of a DATA frame beside its payload, bytes. */
export const pieceCost = 16
/** Most bytes of the payload of any other frame. */
export const maxPayloadBytes = 256 * 1024
const headerBytes = 6
// Made once: each takes workerd as long as the rest of a frame.
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })
const known: ReadonlySet<number> = new Set(Object.values(frameKinds))

export interface TunnelFrame {
  readonly kind: FrameKind
  readonly flags: number
  readonly stream: number
  readonly payload: Uint8Array
}

/** The other end broke the protocol. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
}

export function encodeTunnelFrame(
  kind: FrameKind,
  stream: number,
  payload: Uint8Array = nothing,
  flagged = 0,
): Uint8Array {
  const bytes = new Uint8Array(headerBytes + payload.length)
  bytes[0] = kind
  bytes[1] = flagged
  new DataView(bytes.buffer).setUint32(2, stream)
  bytes.set(payload, headerBytes)
  return bytes
}

/** Throws RangeError when the JSON is longer than a frame may be. */
export function encodeJson(kind: FrameKind, stream: number, value: unknown): Uint8Array {
  const payload = encoder.encode(JSON.stringify(value))
  if (payload.length > maxPayloadBytes) throw new RangeError('its headers are too long')
  return encodeTunnelFrame(kind, stream, payload)
}

export function encodeWindow(stream: number, credit: number): Uint8Array {
  const payload = new Uint8Array(4)
  new DataView(payload.buffer).setUint32(0, credit)
  return encodeTunnelFrame(frameKinds.window, stream, payload)
}

/** An ANSWER; undefined when it is longer than a frame may be. */
export function encodeAnswer(stream: number, head: unknown, body: Uint8Array): Uint8Array | undefined {
  const json = encoder.encode(JSON.stringify(head))
  if (body.length > maxPieceBytes || 4 + json.length + body.length > maxPayloadBytes) return undefined
  const payload = new Uint8Array(4 + json.length + body.length)
  new DataView(payload.buffer).setUint32(0, json.length)
  payload.set(json, 4)
  payload.set(body, 4 + json.length)
  return encodeTunnelFrame(frameKinds.answer, stream, payload)
}

/** The JSON of an ANSWER, and its body. */
export function decodeAnswer(payload: Uint8Array): {
  readonly head: Uint8Array
  readonly body: Uint8Array<ArrayBuffer>
} {
  const length = payload.length < 4 ? 0 : new DataView(payload.buffer, payload.byteOffset).getUint32(0)
  const body = payload.slice(4 + length)
  if (length === 0 || length > payload.length - 4 || body.length > maxPieceBytes)
    throw new ProtocolError('an ANSWER frame is malformed')
  return { head: payload.subarray(4, 4 + length), body }
}

/** Frames as one; their sizes with 4 more each are `maxPayloadBytes` at most. */
export function encodeBatch(frames: readonly Uint8Array[]): Uint8Array {
  const payload = new Uint8Array(frames.reduce((sum, { length }) => sum + 4 + length, 0))
  const view = new DataView(payload.buffer)
  let at = 0
  for (const frame of frames) {
    view.setUint32(at, frame.length)
    payload.set(frame, at + 4)
    at += 4 + frame.length
  }
  return encodeTunnelFrame(frameKinds.batch, 0, payload)
}

/** The frames of a BATCH, which are all of that kind. */
export function decodeBatch(payload: Uint8Array, kind: FrameKind): TunnelFrame[] {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength)
  const frames: TunnelFrame[] = []
  let at = 0
  do {
    const length = at + 4 > payload.length ? 0 : view.getUint32(at)
    const frame = payload.subarray(at + 4, at + 4 + length)
    if (length === 0 || frame.length < length || frame[0] !== kind)
      throw new ProtocolError('a BATCH frame is malformed')
    frames.push(decodeTunnelFrame(frame))
    at += 4 + length
  } while (at < payload.length)
  return frames
}

export function decodeTunnelFrame(bytes: Uint8Array): TunnelFrame {
  const kind = bytes[0] ?? 0
  if (bytes.length < headerBytes || !known.has(kind)) throw new ProtocolError('a message is not a frame')
  const payload = bytes.subarray(headerBytes)
  if (payload.length > (kind === frameKinds.data ? maxPieceBytes : maxPayloadBytes))
    throw new ProtocolError('a frame is too long')
  return {
    kind: kind as FrameKind,
    flags: bytes[1] ?? 0,
    stream: new DataView(bytes.buffer, bytes.byteOffset).getUint32(2),
    payload,
  }
}

export function decodeWindow(payload: Uint8Array): number {
  if (payload.length !== 4) throw new ProtocolError('a WINDOW frame is not 4 bytes long')
  return new DataView(payload.buffer, payload.byteOffset).getUint32(0)
}

export function decodeJson<T extends TSchema>(payload: Uint8Array, schema: T): Static<T> {
  let value: unknown
  try {
    value = JSON.parse(decoder.decode(payload))
  } catch {
    throw new ProtocolError('a frame does not contain JSON')
  }
  if (!Check(schema, value)) throw new ProtocolError('the JSON of a frame does not fit its type')
  return value
}

const nothing = new Uint8Array()
