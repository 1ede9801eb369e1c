import { LibvirtError } from './libvirt-error.ts'
import { XdrReader, XdrWriter } from './xdr.ts'

/**
 * The wire protocol: src/rpc/virnetprotocol.x (messages) and src/remote/remote_protocol.x (procedures) of libvirt. Released numbers
 * and types never change.
 */
export const remoteProgram = 0x20008086
export const keepaliveProgram = 0x6b656570
export const keepalive = { ping: 1, pong: 2 } as const

export const procedures = {
  connectOpen: 1,
  connectGetCapabilities: 7,
  domainCreateXml: 10,
  domainDefineXml: 11,
  domainGetXmlDesc: 14,
  domainLookupByName: 23,
  domainLookupByUuid: 24,
  domainResume: 28,
  domainSuspend: 34,
  authList: 66,
  authPolkit: 70,
  connectGetLibVersion: 157,
  domainUpdateDeviceFlags: 174,
  domainManagedSave: 182,
  domainHasManagedSaveImage: 183,
  domainGetBlockInfo: 194,
  domainCreateWithFlags: 196,
  domainGetState: 212,
  domainUndefineFlags: 231,
  domainDestroyFlags: 234,
  domainReset: 245,
  domainShutdownFlags: 258,
  domainPmWakeup: 267,
  connectListAllDomains: 273,
  connectDomainEventCallbackRegisterAny: 316,
  domainEventCallbackLifecycle: 318,
  domainInterfaceAddresses: 353,
  domainRename: 358,
  domainManagedSaveGetXmlDesc: 388,
  domainManagedSaveDefineXml: 389,
} as const

export const authTypes = { none: 0, sasl: 1, polkit: 2 } as const

/** virNetMessageType. */
export const messageTypes = { call: 0, reply: 1, message: 2 } as const
const statuses = { ok: 0, error: 1 } as const

/** VIR_NET_MESSAGE_MAX and the length field. */
const maxMessageBytes = (16 << 20) + 4
const lengthBytes = 4
const headerBytes = 24

export interface Message {
  readonly program: number
  readonly procedure: number
  readonly type: number
  /** A reply has the serial of its call. */
  readonly serial: number
  readonly isError: boolean
  readonly payload: Buffer
}

export function encodeMessage({ program, procedure, type, serial, isError, payload }: Message): Buffer {
  const length = lengthBytes + headerBytes + payload.length
  if (length > maxMessageBytes)
    throw new LibvirtError('protocol', `A message to libvirt may have ${maxMessageBytes} bytes, got ${length}`)
  const status = isError ? statuses.error : statuses.ok
  const header = new XdrWriter().uint(length).uint(program).uint(1).int(procedure).int(type).uint(serial).int(status)
  return Buffer.concat([header.bytes, payload])
}

/** Splits a byte stream into messages. Throws a LibvirtError on an invalid length. */
export class MessageReader {
  #chunks: Buffer[] = []
  #size = 0
  #needed = lengthBytes

  push(bytes: Buffer): Message[] {
    this.#chunks.push(bytes)
    this.#size += bytes.length
    const messages: Message[] = []
    while (this.#size >= this.#needed) {
      const [first = Buffer.alloc(0)] = this.#chunks
      const buffer = this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks)
      const length = buffer.readUInt32BE(0)
      if (length < lengthBytes + headerBytes || length > maxMessageBytes)
        throw new LibvirtError('protocol', `libvirt does not speak its protocol: a message of ${length} bytes`)
      // The chunks are joined again only when the message is complete.
      this.#needed = buffer.length < length ? length : lengthBytes
      const rest = buffer.length < length ? buffer : buffer.subarray(length)
      this.#chunks = [rest]
      this.#size = rest.length
      if (buffer.length >= length) messages.push(decode(buffer.subarray(lengthBytes, length)))
    }
    return messages
  }
}

function decode(bytes: Buffer): Message {
  const reader = new XdrReader(bytes)
  const program = reader.uint()
  reader.uint()
  const procedure = reader.int()
  const type = reader.int()
  const serial = reader.uint()
  const isError = reader.int() === statuses.error
  return { program, procedure, type, serial, isError, payload: bytes.subarray(headerBytes) }
}

/** Parses an error reply (remote_error). */
export function refusalIn(payload: Buffer): LibvirtError {
  const reader = new XdrReader(payload)
  const number = reader.int()
  reader.int()
  const message = reader.maybe((it) => it.string()) ?? `error ${number}`
  return new LibvirtError('refused', `libvirt: ${message.trim()}`, { number })
}
