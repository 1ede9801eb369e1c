import { createConnection, type Socket } from 'node:net'
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

/** More calls than this without an answer: libvirt hangs, and so does whoever calls it. */
const maxPending = 256
const nothing = Buffer.alloc(0)
const lifecycleEvent = 0
const joinGroup = 'sudo usermod -aG libvirt "$USER", then log in again'

export interface ConnectOptions {
  /** Path of the UNIX socket. */
  readonly socket: string
  readonly uri: string
  /** Bound of every step of it, ms. */
  readonly ms: number
}

interface Pending {
  readonly resolve: (payload: Buffer) => void
  readonly reject: (error: LibvirtError) => void
}

/** A connection to one libvirt daemon. */
export class LibvirtConnection {
  /** Resolves when the connection is gone, whoever ended it. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #reader = new MessageReader()
  readonly #pending = new Map<number, Pending>()
  #lastSerial = 0
  #end: LibvirtError | undefined
  /** Called with the id of a VM that did something. */
  #heard: (uuid: string) => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()))
    socket.on('data', (bytes) => this.#receive(bytes as Buffer))
    socket.on('error', (cause) =>
      this.#fail(new LibvirtError('closed', 'The connection to libvirt broke: try again', { cause })),
    )
    socket.on('close', () => this.#fail(new LibvirtError('closed', 'libvirt ended the connection: try again')))
  }

  /** Connects and is let in; from then on what VMs do is told. */
  static async open(
    { socket: path, uri, ms }: ConnectOptions,
    heard: (uuid: string) => void,
  ): Promise<LibvirtConnection> {
    const connection = new LibvirtConnection(await connect(path, ms))
    connection.#heard = heard
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

  /** Whether calls can still be made. */
  get isOpen(): boolean {
    return this.#end === undefined
  }

  /** Calls a procedure and waits for its reply at most `ms`; one that comes later is dropped. */
  async call(procedure: number, args: XdrWriter | undefined, ms: number): Promise<XdrReader> {
    if (this.#end !== undefined) throw this.#end
    if (this.#pending.size >= maxPending) {
      throw new LibvirtError('timeout', `${maxPending} calls have no answer from libvirt yet: it hangs`)
    }
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

  /** Lets go of libvirt; what runs there runs on. Safe to call twice. */
  close(): void {
    this.#fail(new LibvirtError('closed', 'The connection to libvirt was closed'))
  }

  /** Serials are 32 bits, and a call of long ago may still have no answer. */
  #nextSerial(): number {
    do this.#lastSerial = (this.#lastSerial + 1) >>> 0
    while (this.#pending.has(this.#lastSerial))
    return this.#lastSerial
  }

  async #authenticate(ms: number): Promise<void> {
    const types = (await this.call(procedures.authList, undefined, ms)).array((it) => it.int())
    if (types.length === 0 || types.includes(authTypes.none)) return
    if (!types.includes(authTypes.polkit)) {
      const way = 'libvirt wants a user and a password (SASL), which cannot be given here'
      throw new LibvirtError('unreachable', `${way}: let the group of its socket in (auth_unix_rw = "none")`)
    }
    try {
      await this.call(procedures.authPolkit, undefined, ms)
    } catch (cause) {
      throw new LibvirtError('unreachable', `libvirt does not let this user in: ${joinGroup}`, { cause })
    }
  }

  #receive(bytes: Buffer): void {
    try {
      for (const message of this.#reader.push(bytes)) if (this.#end === undefined) this.#take(message)
    } catch (cause) {
      const { message } = cause as Error
      this.#fail(new LibvirtError('protocol', `What comes from libvirt is not its protocol: ${message}`, { cause }))
    }
  }

  #take(message: Message): void {
    const { program, procedure, type, serial, isError, payload } = message
    if (program === keepaliveProgram) {
      // One that hears nothing for a while takes us for dead.
      if (procedure === keepalive.ping) this.#socket.write(encodeMessage({ ...message, procedure: keepalive.pong }))
      return
    }
    if (type === messageTypes.message) {
      if (procedure === procedures.domainEventCallbackLifecycle) this.#heard(uuidOfEvent(payload))
      return
    }
    if (type !== messageTypes.reply) throw new Error(`a message of type ${type}`)
    // Without one: the reply to a call that nobody waits for any more.
    const pending = this.#pending.get(serial)
    if (isError) pending?.reject(refusalIn(payload))
    else pending?.resolve(payload)
  }

  #fail(error: LibvirtError): void {
    if (this.#end !== undefined) return
    this.#end = error
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

function connect(path: string, ms: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path)
    const late = Object.assign(new Error(`no answer within ${ms} ms`), { code: 'ETIMEDOUT' })
    const timer = setTimeout(() => socket.destroy(late), ms)
    const failed = (cause: Error) => {
      clearTimeout(timer)
      const { code } = cause as NodeJS.ErrnoException
      const remedy = code === 'EACCES' ? `: ${joinGroup}` : ''
      reject(new LibvirtError('unreachable', `libvirt cannot be reached at ${path} (${code})${remedy}`, { cause }))
    }
    socket.once('error', failed)
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.off('error', failed)
      resolve(socket)
    })
  })
}
