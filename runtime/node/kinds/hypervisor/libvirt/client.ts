import { ignore } from '../../../../../src/async/ignore.ts'
import { addressOf, type LibvirtUri } from './address.ts'
import { LibvirtConnection } from './connection.ts'
import { installCommand, startSessionDaemon } from './daemon.ts'
import { readDomain } from './domain.ts'
import { isAbsence, LibvirtError } from './libvirt-error.ts'
import { procedures } from './protocol.ts'
import { type XdrReader, XdrWriter } from './xdr.ts'

export interface ClientOptions {
  readonly uri: () => string
  /** Whether a session's daemon is started when it is not there; on unless said otherwise. */
  readonly startsDaemon?: boolean
  /** Bound of every step of connecting, ms. */
  readonly connectMs?: number
  /** Between attempts to be connected again: the first wait and the longest, ms. */
  readonly retryMs?: readonly [number, number]
}

/** How long a connection that nobody needs is kept, ms: a session's daemon ends only without one. */
const idleMs = 30_000

/**
 * A libvirt that is called when needed. While somebody watches, a connection that is lost is made again, and then everything may
 * have changed.
 */
export class LibvirtClient {
  readonly #options: ClientOptions
  readonly #watchers = new Set<(uuid: string) => void>()
  /** VMs that were heard of: those that are gone after a loss have changed, too. */
  readonly #known = new Set<string>()
  #connection: { readonly uri: string; readonly made: Promise<LibvirtConnection> } | undefined
  #calls = 0
  /** Whether anything was ever wanted of libvirt: to be watched alone is no reason to start a session's daemon. */
  #isNeeded = false
  #wait = 0
  #idle: NodeJS.Timeout | undefined
  #retry: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: ClientOptions) {
    this.#options = options
  }

  async call(procedure: number, args: XdrWriter | undefined, ms: number): Promise<XdrReader> {
    this.#calls++
    this.#isNeeded = true
    clearTimeout(this.#idle)
    try {
      const connection = await this.#connected()
      return await connection.call(procedure, args, ms)
    } finally {
      this.#calls--
      this.#restWhenIdle()
    }
  }

  /** Calls back with the id of a VM that may have changed; the function that comes back ends that. */
  watch(changed: (uuid: string) => void): () => void {
    const own = (uuid: string) => changed(uuid)
    this.#watchers.add(own)
    clearTimeout(this.#idle)
    if (this.#connection === undefined && this.#isNeeded) this.#again()
    return () => {
      this.#watchers.delete(own)
      this.#restWhenIdle()
    }
  }

  close(): void {
    this.#isClosed = true
    this.#watchers.clear()
    this.#letGo()
  }

  #letGo(): void {
    clearTimeout(this.#idle)
    clearTimeout(this.#retry)
    const connection = this.#connection
    this.#connection = undefined
    connection?.made.then((made) => made.close(), ignore('a connection that was not made needs no close'))
  }

  async #connected(): Promise<LibvirtConnection> {
    if (this.#isClosed) throw new LibvirtError('closed', 'The connection to libvirt was closed')
    const uri = this.#options.uri()
    // The setting may have changed.
    if (this.#connection !== undefined && this.#connection.uri !== uri) this.#letGo()
    this.#connection ??= this.#begin(uri)
    return this.#connection.made
  }

  #begin(uri: string): { uri: string; made: Promise<LibvirtConnection> } {
    clearTimeout(this.#retry)
    const begun = { uri, made: this.#make(uri) }
    const over = () => {
      // Another one may have taken its place.
      if (this.#connection !== begun) return
      this.#connection = undefined
      if (this.#watchers.size > 0) this.#again()
    }
    begun.made.then(
      (made) => {
        this.#wait = 0
        void made.closed.then(over)
        void this.#tellAll(made)
      },
      () => {
        const [first, longest] = this.#options.retryMs ?? [250, 10_000]
        this.#wait = Math.min(longest, Math.max(first, this.#wait * 2))
        over()
      },
    )
    return begun
  }

  async #make(uri: string): Promise<LibvirtConnection> {
    const address = addressOf(uri)
    const connection = await this.#open(address)
    if (!this.#isClosed) return connection
    connection.close()
    throw new LibvirtError('closed', 'The connection to libvirt was closed')
  }

  async #open(address: LibvirtUri): Promise<LibvirtConnection> {
    try {
      return await this.#tryAll(address)
    } catch (error) {
      const mayStart = address.isSession && this.#options.startsDaemon !== false
      if (!mayStart || !isAbsence(error)) throw error
      await startSessionDaemon()
      return this.#tryAll(address)
    }
  }

  async #tryAll({ uri, sockets }: LibvirtUri): Promise<LibvirtConnection> {
    let last: unknown
    for (const socket of sockets) {
      try {
        const ms = this.#options.connectMs ?? 10_000
        return await LibvirtConnection.open({ socket, uri, ms }, (uuid) => this.#heard(uuid))
      } catch (error) {
        // One that is there and refuses says more than those that are not.
        if (last === undefined || isAbsence(last)) last = error
      }
    }
    throw isAbsence(last) ? absent(uri, last) : last
  }

  #heard(uuid: string): void {
    this.#known.add(uuid)
    for (const watcher of [...this.#watchers]) watcher(uuid)
  }

  /** Nobody knows what was missed before the connection was there. */
  async #tellAll(connection: LibvirtConnection): Promise<void> {
    const every = new XdrWriter().int(1).uint(0)
    try {
      const reply = await connection.call(procedures.connectListAllDomains, every, this.#options.connectMs ?? 10_000)
      const present = reply.array((it) => readDomain(it).uuid)
      const all = new Set([...this.#known, ...present])
      this.#known.clear()
      for (const uuid of all) this.#heard(uuid)
    } catch {
      // The next connection tells them.
      connection.close()
    }
  }

  #again(): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => {
      if (this.#isClosed || this.#watchers.size === 0) return
      this.#connected().catch(ignore('what becomes of a connection is seen where it is begun'))
    }, this.#wait)
    this.#retry.unref()
  }

  #restWhenIdle(): void {
    if (this.#isClosed || this.#calls > 0 || this.#watchers.size > 0) return
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => this.#letGo(), idleMs)
    this.#idle.unref()
  }
}

/** What may be done about it is told with it. */
function absent(uri: string, cause: unknown): LibvirtError {
  const remedy = `install it (${installCommand}) or start it (sudo systemctl start libvirtd)`
  return new LibvirtError('unreachable', `No libvirt answers at ${uri}: ${remedy}`, {
    cause: (cause as LibvirtError).cause,
  })
}
