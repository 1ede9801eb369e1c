import { createHmac, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import type { UdpAddress } from '../../../../src/model/link-check.ts'

/**
 * A probe between two computes: a UDP datagram of 84 bytes, so that an answer is never longer than its question.
 * Offsets: 0 magic, 8 version, 9 kind, 10 end of the sender, 11 flags, 12 id of the question (8 bytes), 20 address from which the question
 * came (text, padded with zeros; empty in a question), 66 its port, 68 the first 16 bytes of an HMAC-SHA-256 of all bytes before.
 */
export interface CheckPacket {
  readonly isQuestion: boolean
  /** Which end of the link has sent it: an end does not answer itself. */
  readonly end: 'a' | 'b'
  /** The sender has got an answer from this address. */
  readonly hasAnswer: boolean
  /** Random for each address that is asked: who knows it has read the question there. */
  readonly id: Buffer
  /** In an answer: from where the question came. */
  readonly seen: UdpAddress | null
}

export const idBytes = 8
const at = { version: 8, kind: 9, end: 10, flags: 11, id: 12, address: 20, port: 66, signature: 68 } as const
const signatureBytes = 16
const length = at.signature + signatureBytes
const magic = Buffer.from('PBLINKUP')
const version = 1
const kinds = { question: 1, answer: 2 } as const

export function encodeCheck({ isQuestion, end, hasAnswer, id, seen }: CheckPacket, key: Buffer): Buffer {
  const bytes = Buffer.alloc(length)
  magic.copy(bytes)
  bytes[at.version] = version
  bytes[at.kind] = isQuestion ? kinds.question : kinds.answer
  bytes[at.end] = end === 'a' ? 0 : 1
  bytes[at.flags] = hasAnswer ? 1 : 0
  id.copy(bytes, at.id)
  if (seen !== null) {
    bytes.write(seen.address, at.address, at.port - at.address, 'latin1')
    bytes.writeUInt16BE(seen.port, at.port)
  }
  signatureOf(bytes, key).copy(bytes, at.signature)
  return bytes
}

/** Undefined for all that is not a probe of this attempt. */
export function decodeCheck(bytes: Buffer, key: Buffer): CheckPacket | undefined {
  if (bytes.length !== length || !bytes.subarray(0, magic.length).equals(magic)) return undefined
  if (bytes[at.version] !== version || !timingSafeEqual(signatureOf(bytes, key), bytes.subarray(at.signature)))
    return undefined
  const isQuestion = bytes[at.kind] === kinds.question
  const address = bytes.toString('latin1', at.address, at.port).replace(/\0+$/, '')
  if (!isQuestion && isIP(address) === 0) return undefined
  return {
    isQuestion,
    end: bytes[at.end] === 0 ? 'a' : 'b',
    hasAnswer: bytes[at.flags] === 1,
    id: bytes.subarray(at.id, at.id + idBytes),
    seen: isQuestion ? null : { address, port: bytes.readUInt16BE(at.port) },
  }
}

const signatureOf = (bytes: Buffer, key: Buffer): Buffer =>
  createHmac('sha256', key).update(bytes.subarray(0, at.signature)).digest().subarray(0, signatureBytes)
