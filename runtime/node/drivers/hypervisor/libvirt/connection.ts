import type { Socket } from 'node:net'
import { connectSocket } from '../../../os/system/connect.ts'
import { readDomain } from './domain.ts'
import { LibvirtError } from './libvirt-error.ts'
import {
  authTypes,
  encodeMessage,
  keepalive,
  keepaliveProgram,
  type Message,
  MessageReader,
  messageTypes,
  procedures,
  refusalIn,
  remoteProgram,
} from './protocol.ts'
import { XdrReader, XdrWriter } from './xdr.ts'

/** Limit of calls without an answer. */
const maxPending = 256
const nothing = Buffer.alloc(0)
const lifecycleEvent = 0
const joinGroup = 'sudo usermod -aG libvirt "$USER", then log in again'

type Pending = { readonly resolve: (payload: Buffer) => void; readonly reject: (error: LibvirtError) => void }

/** A connection to one libvirt daemon. */
export class LibvirtConnection {
  /** Resolves when the connection is closed from either side. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #reader = new MessageReader()
  readonly #pending = new Map<number, Pending>()
  #lastSerial = 0
  #failure: LibvirtError | undefined
  /** Called with the UUID of a VM after a lifecycle event. */
  #onEvent: (uuid: string) => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()))
    socket.on('data', (bytes) => this.#receive(bytes as Buffer))
    socket.on('error', (cause) =>
      this.#fail(new LibvirtError('closed', 'The connection to libvirt broke: try again', { cause })),
    )
    socket.on('close', () => this.#fail(new LibvirtError('closed', 'libvirt ended the connection: try again')))
  }

  /** Connects to a UNIX socket, authenticates, and subscribes to lifecycle events. `ms` is the timeout of each step. */
  static async open(
    { socket: path, uri, ms }: { readonly socket: string; readonly uri: string; readonly ms: number },
    onEvent: (uuid: string) => void,
  ): Promise<LibvirtConnection> {
    const socket = await connectSocket({ path }, ms).catch((cause: NodeJS.ErrnoException) => {
      const remedy = cause.code === 'EACCES' ? `: ${joinGroup}` : ''
      throw new LibvirtError('unreachable', `libvirt cannot be reached at ${path} (${cause.code})${remedy}`, { cause })
    })
    const connection = new LibvirtConnection(socket)
    connection.#onEvent = onEvent
    try {
      await connection.#authenticate(ms)
      await connection.call(procedures.connectOpen, new XdrWriter().maybeString(uri).uint(0), ms)
      const everyVm = new XdrWriter().int(lifecycleEvent).uint(0)
      await connection.call(procedures.connectDomainEventCallbackRegisterAny, everyVm, ms)
      return connection
    } catch (error) {
      connection.close()
      throw error
    }
  }

  /** Whether the connection takes calls. */
  get isOpen(): boolean {
    return this.#failure === undefined
  }

  /** Calls a procedure; a reply after `ms` is dropped. */
  async call(procedure: number, args: XdrWriter | undefined, ms: number): Promise<XdrReader> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#pending.size >= maxPending)
      throw new LibvirtError('timeout', `libvirt has not answered ${maxPending} calls: it hangs`)
    const serial = this.#nextSerial()
    const payload = args?.bytes ?? nothing
    const message = { program: remoteProgram, procedure, type: messageTypes.call, serial, isError: false, payload }
    const bytes = encodeMessage(message)
    let timer: NodeJS.Timeout | undefined
    try {
      const reply = await new Promise<Buffer>((resolve, reject) => {
        timer = setTimeout(() => reject(new LibvirtError('timeout', `libvirt did not answer within ${ms} ms`)), ms)
        this.#pending.set(serial, { resolve, reject })
        this.#socket.write(bytes)
      })
      return new XdrReader(reply)
    } finally {
      clearTimeout(timer)
      this.#pending.delete(serial)
    }
  }

  /** Closes the connection. */
  close(): void {
    this.#fail(new LibvirtError('closed', 'The connection to libvirt was closed'))
  }

  /** Serials have 32 bits; those of pending calls are skipped. */
  #nextSerial(): number {
    do this.#lastSerial = (this.#lastSerial + 1) >>> 0
    while (this.#pending.has(this.#lastSerial))
    return this.#lastSerial
  }

  async #authenticate(ms: number): Promise<void> {
    const types = (await this.call(procedures.authList, undefined, ms)).array((it) => it.int())
    if (types.length === 0 || types.includes(authTypes.none)) return
    if (!types.includes(authTypes.polkit)) {
      const problem = 'libvirt requires a user and a password (SASL), which Patchbay does not support'
      throw new LibvirtError('unreachable', `${problem}: allow the group of its socket (auth_unix_rw = "none")`)
    }
    try {
      await this.call(procedures.authPolkit, undefined, ms)
    } catch (cause) {
      throw new LibvirtError('unreachable', `libvirt refuses this user: ${joinGroup}`, { cause })
    }
  }

  #receive(bytes: Buffer): void {
    try {
      for (const message of this.#reader.push(bytes)) if (this.#failure === undefined) this.#handle(message)
    } catch (cause) {
      const { message } = cause as Error
      this.#fail(new LibvirtError('protocol', `libvirt does not speak its protocol: ${message}`, { cause }))
    }
  }

  #handle(message: Message): void {
    const { program, procedure, type, serial, isError, payload } = message
    if (program === keepaliveProgram) {
      // libvirt closes a connection that does not answer its keepalives.
      if (procedure === keepalive.ping) this.#socket.write(encodeMessage({ ...message, procedure: keepalive.pong }))
      return
    }
    if (type === messageTypes.message) {
      if (procedure === procedures.domainEventCallbackLifecycle) this.#onEvent(uuidOfEvent(payload))
      return
    }
    if (type !== messageTypes.reply) throw new Error(`a message of type ${type}`)
    // Undefined after the timeout of the call.
    const pending = this.#pending.get(serial)
    if (isError) pending?.reject(refusalIn(payload))
    else pending?.resolve(payload)
  }

  #fail(error: LibvirtError): void {
    if (this.#failure !== undefined) return
    this.#failure = error
    for (const { reject } of this.#pending.values()) reject(error)
    this.#socket.destroy()
  }
}

/** remote_domain_event_callback_lifecycle_msg: the number of the callback, the VM, what it did. */
function uuidOfEvent(payload: Buffer): string {
  const reader = new XdrReader(payload)
  reader.int()
  return readDomain(reader).uuid
}
