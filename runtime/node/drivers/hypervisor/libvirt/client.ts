import { ignore } from '../../../../../src/lib/async/ignore.ts'
import { addressOf, type LibvirtUri } from './address.ts'
import { LibvirtConnection } from './connection.ts'
import { installCommand, startSessionDaemon } from './daemon.ts'
import { readDomain } from './domain.ts'
import { isAbsence, LibvirtError } from './libvirt-error.ts'
import { procedures } from './protocol.ts'
import { type XdrReader, XdrWriter } from './xdr.ts'

export interface ClientOptions {
  readonly uri: () => string
  /** Whether the daemon of a session is started on demand. Default: true. */
  readonly startsDaemon?: boolean
  /** Timeout of each step of connecting, ms. */
  readonly connectMs?: number
  /** Backoff between reconnects: the first and the longest wait, ms. */
  readonly retryMs?: readonly [number, number]
}

/** An idle connection is closed after this time, ms, because the daemon of a session ends only without clients. */
const idleMs = 30_000

/** A client that connects on demand. While there are watchers, it reconnects, and reports all VMs as changed then. */
export class LibvirtClient {
  readonly #options: ClientOptions
  readonly #watchers = new Set<(uuid: string) => void>()
  /** VMs with events: after a reconnect, vanished ones are reported, too. */
  readonly #seen = new Set<string>()
  #connection: { readonly uri: string; readonly opened: Promise<LibvirtConnection> } | undefined
  #calls = 0
  /** Whether there was a call: a watch alone does not start the daemon of a session. */
  #wasCalled = false
  #wait = 0
  #idle: NodeJS.Timeout | undefined
  #retry: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: ClientOptions) {
    this.#options = options
  }

  async call(procedure: number, args: XdrWriter | undefined, ms: number): Promise<XdrReader> {
    this.#calls++
    this.#wasCalled = true
    clearTimeout(this.#idle)
    try {
      const connection = await this.#connected()
      return await connection.call(procedure, args, ms).catch(async (error: unknown) => {
        // The call may have taken effect, so it is not repeated; but a libvirt that is gone is reported as such.
        if (!connection.isOpen && !this.#isClosed) {
          await connection.closed
          await this.#connected()
        }
        throw error
      })
    } finally {
      this.#calls--
      this.#disconnectWhenIdle()
    }
  }

  /** Calls back with the UUID of a VM that may have changed; the result ends the watch. */
  watch(changed: (uuid: string) => void): () => void {
    const own = (uuid: string) => changed(uuid)
    this.#watchers.add(own)
    clearTimeout(this.#idle)
    if (this.#connection === undefined && this.#wasCalled) this.#scheduleReconnect()
    return () => {
      this.#watchers.delete(own)
      this.#disconnectWhenIdle()
    }
  }

  close(): void {
    this.#isClosed = true
    this.#watchers.clear()
    this.#disconnect()
  }

  #disconnect(): void {
    clearTimeout(this.#idle)
    clearTimeout(this.#retry)
    const connection = this.#connection
    this.#connection = undefined
    connection?.opened.then((opened) => opened.close(), ignore('a failed connection needs no close'))
  }

  async #connected(): Promise<LibvirtConnection> {
    if (this.#isClosed) throw new LibvirtError('closed', 'The connection to libvirt was closed')
    const uri = this.#options.uri()
    // The setting may have changed since.
    if (this.#connection !== undefined && this.#connection.uri !== uri) this.#disconnect()
    this.#connection ??= this.#connect(uri)
    return this.#connection.opened
  }

  #connect(uri: string): { uri: string; opened: Promise<LibvirtConnection> } {
    clearTimeout(this.#retry)
    const connection = { uri, opened: this.#open(uri) }
    const onClosed = () => {
      // A newer connection may have replaced it.
      if (this.#connection !== connection) return
      this.#connection = undefined
      if (this.#watchers.size > 0) this.#scheduleReconnect()
    }
    connection.opened.then(
      (opened) => {
        this.#wait = 0
        void opened.closed.then(onClosed)
        void this.#reportAll(opened)
      },
      () => {
        const [first, longest] = this.#options.retryMs ?? [250, 10_000]
        this.#wait = Math.min(longest, Math.max(first, this.#wait * 2))
        onClosed()
      },
    )
    return connection
  }

  async #open(uri: string): Promise<LibvirtConnection> {
    const address = addressOf(uri)
    const mayStart = address.isSession && this.#options.startsDaemon !== false
    const connection = await this.#tryAll(address).catch(async (error: unknown) => {
      if (!mayStart || !isAbsence(error)) throw error
      await startSessionDaemon()
      return this.#tryAll(address)
    })
    if (!this.#isClosed) return connection
    connection.close()
    throw new LibvirtError('closed', 'The connection to libvirt was closed')
  }

  async #tryAll({ uri, sockets }: LibvirtUri): Promise<LibvirtConnection> {
    let reason: unknown
    for (const socket of sockets) {
      try {
        const ms = this.#options.connectMs ?? 10_000
        return await LibvirtConnection.open({ socket, uri, ms }, (uuid) => this.#report(uuid))
      } catch (error) {
        // A refusal says more than a missing socket.
        if (reason === undefined || isAbsence(reason)) reason = error
      }
    }
    throw isAbsence(reason) ? absent(uri, reason) : reason
  }

  #report(uuid: string): void {
    this.#seen.add(uuid)
    for (const watcher of [...this.#watchers]) watcher(uuid)
  }

  /** Reports all VMs as changed, because events before the connection were missed. */
  async #reportAll(connection: LibvirtConnection): Promise<void> {
    const all = new XdrWriter().int(1).uint(0)
    try {
      const reply = await connection.call(procedures.connectListAllDomains, all, this.#options.connectMs ?? 10_000)
      const present = reply.array((it) => readDomain(it).uuid)
      const uuids = new Set([...this.#seen, ...present])
      this.#seen.clear()
      for (const uuid of uuids) this.#report(uuid)
    } catch {
      // The next connection reports them.
      connection.close()
    }
  }

  #scheduleReconnect(): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => {
      if (this.#isClosed || this.#watchers.size === 0) return
      this.#connected().catch(ignore('the connection handles its failure'))
    }, this.#wait).unref()
  }

  #disconnectWhenIdle(): void {
    if (this.#isClosed || this.#calls > 0 || this.#watchers.size > 0) return
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => this.#disconnect(), idleMs).unref()
  }
}

function absent(uri: string, cause: unknown): LibvirtError {
  const remedy = `install it (${installCommand}) or start it (sudo systemctl start libvirtd)`
  return new LibvirtError('unreachable', `No libvirt answers at ${uri}: ${remedy}`, {
    cause: (cause as LibvirtError).cause,
  })
}
