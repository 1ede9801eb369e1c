import { once } from 'node:events'
import { type Socket as Connection, createServer } from 'node:net'
import ssh2, { type Connection as Client, type ServerChannel } from 'ssh2'
import { TerminalSizes } from '../../../../src/client/terminal-sizes.ts'
import { plainAddress } from '../../../../src/lib/http/network.ts'
import type { Log } from '../../os/log/log.ts'
import { runSession, type SessionOptions } from './console-session.ts'
import { type LogInOptions, SshLogIn } from './log-in.ts'

const maxConnections = 512
/** Most connections whose client has not logged in, in all and from one address. */
const maxStrangers = 256
const maxStrangersOfAddress = 64
/** Most connections with one credential. */
const maxOfKey = 128
/** Most sessions of a connection at the same time, as OpenSSH has it. */
const maxSessions = 10
/** Timeout for a log-in, ms. */
const logInMs = 30_000
/** A client that answers nothing for `keepAliveMs` times `maxUnanswered` has gone. */
const keepAliveMs = 30_000
const maxUnanswered = 3
/** Most bytes that wait for a client that does not read, and that a client may send beyond the window of a channel. */
const maxUnsent = 4 << 20
const maxUnread = 4 << 20

/** Without SHA-1, CBC and compression. */
const algorithms = {
  kex: [
    ...(['curve25519-sha256', 'curve25519-sha256@libssh.org'] as const),
    ...(['ecdh-sha2-nistp256', 'ecdh-sha2-nistp384', 'ecdh-sha2-nistp521'] as const),
    ...(['diffie-hellman-group14-sha256', 'diffie-hellman-group16-sha512'] as const),
  ],
  cipher: [
    ...(['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com'] as const),
    ...(['aes128-ctr', 'aes192-ctr', 'aes256-ctr'] as const),
  ],
  hmac: [
    ...(['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com'] as const),
    ...(['hmac-sha2-256', 'hmac-sha2-512'] as const),
  ],
  compress: ['none' as const],
} satisfies ssh2.ServerConfig['algorithms']

export interface SshOptions extends LogInOptions, SessionOptions {
  readonly host: string
  readonly port: number
  /** See `hostKeyOf`. */
  readonly hostKey: string
  readonly log: Log
}

/** Listens for SSH clients, which get the consoles of nodes and nothing else. Rejects when it cannot. */
export async function listenForSsh(options: SshOptions): Promise<{ close(): Promise<void> }> {
  const protocol = new ssh2.Server({
    hostKeys: [options.hostKey],
    ident: 'Patchbay',
    algorithms,
    keepaliveInterval: keepAliveMs,
    keepaliveCountMax: maxUnanswered,
  } as ssh2.ServerConfig)
  const guests = new Guests(options)
  protocol.on('connection', (client, { ip }) => guests.serve(client, ip))
  const server = createServer((connection) => guests.admit(connection, () => protocol.injectSocket(connection)))
  const listening = once(server, 'listening')
  server.listen({ host: options.host, port: options.port })
  await listening
  // Later errors concern single connections (too many open files).
  server.on('error', () => {})
  return {
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      guests.end()
      await closed
    },
  }
}

/** The connections of all SSH clients. */
class Guests {
  readonly #options: SshOptions
  readonly #connections = new Set<Connection>()
  /** Addresses of those that have not logged in. */
  readonly #strangers = new Map<Connection, string>()
  /** How many connections a credential has. */
  readonly #ofKey = new Map<string, number>()

  constructor(options: SshOptions) {
    this.#options = options
  }

  /** Takes a connection, or ends it where there are too many. */
  admit(connection: Connection, begin: () => void): void {
    const address = plainAddress(connection.remoteAddress ?? '')
    const ofAddress = [...this.#strangers.values()].filter((it) => it === address).length
    if (
      this.#connections.size >= maxConnections ||
      this.#strangers.size >= maxStrangers ||
      ofAddress >= maxStrangersOfAddress
    ) {
      connection.destroy()
      return
    }
    this.#connections.add(connection)
    this.#strangers.set(connection, address)
    const timer = setTimeout(() => {
      if (this.#strangers.has(connection)) connection.destroy()
    }, logInMs)
    connection.setNoDelay(true)
    connection.once('close', () => {
      clearTimeout(timer)
      this.#connections.delete(connection)
      this.#strangers.delete(connection)
    })
    begin()
    // Answers to requests wait for their client, too.
    connection.on('data', () => {
      if (connection.writableLength > maxUnsent) connection.destroy()
    })
  }

  /** Serves a client that has named itself. */
  serve(client: Client, ip: string): void {
    // The library does not tell the connection of a client.
    const { _sock: connection } = client as unknown as { _sock: Connection }
    const address = plainAddress(ip)
    const logIn = new SshLogIn(this.#options, address)
    const fail = (error: unknown) => {
      this.#options.log.error({ err: error }, 'an SSH log-in failed')
      connection.destroy()
    }
    client.on('error', () => connection.destroy())
    client.on('authentication', (attempt) => {
      void logIn.answer(attempt).then((goesOn) => goesOn || client.end(), fail)
    })
    client.on('ready', () => {
      this.#strangers.delete(connection)
      void this.#count(logIn, connection, address).catch(fail)
      const channels = new Set<ServerChannel>()
      let sessions = 0
      connection.on('data', () => {
        for (const { readableLength } of channels) if (readableLength > maxUnread) connection.destroy()
      })
      client.on('session', (accept, reject) => {
        if (sessions >= maxSessions) return void reject()
        sessions += 1
        const session = accept()
        let terminal: TerminalSizes | undefined
        session.on('pty', (accept, _, { cols, rows }) => {
          terminal ??= new TerminalSizes()
          terminal.set(cols, rows)
          accept?.()
        })
        session.on('window-change', (accept, _, { cols, rows }) => {
          terminal?.set(cols, rows)
          accept?.()
        })
        session.on('close', () => {
          sessions -= 1
        })
        const run = (channel: ServerChannel | undefined, line?: string) => {
          // A session has one program (RFC 4254, 6.5). The library accepts no second one, and cannot refuse it either.
          if (channel === undefined) return void connection.destroy()
          channels.add(channel)
          channel.once('close', () => channels.delete(channel))
          void logIn
            .identity()
            .then((identity) =>
              runSession(this.#options, {
                ...{ user: logIn.user, identity, channel, connection, terminal },
                ...(line !== undefined && { line }),
              }),
            )
            .catch((error: unknown) => {
              this.#options.log.error({ err: error }, 'an SSH session failed')
              channel.close()
            })
        }
        session.on('shell', (accept) => run(accept()))
        session.on('exec', (accept, _, { command }) => run(accept(), command))
      })
    })
  }

  /** Ends all connections: the service goes away. */
  end(): void {
    for (const connection of this.#connections) connection.destroy()
  }

  /** Counts a connection for its credential; ends it where that has too many. */
  async #count(logIn: SshLogIn, connection: Connection, address: string): Promise<void> {
    const identity = await logIn.identity()
    if (identity === undefined) return
    const { key, name } = identity
    const count = (this.#ofKey.get(key) ?? 0) + 1
    this.#options.log.debug({ by: name, address }, 'SSH log-in')
    if (count > maxOfKey || connection.destroyed) {
      connection.destroy()
      return
    }
    this.#ofKey.set(key, count)
    connection.once('close', () => {
      const left = (this.#ofKey.get(key) ?? 1) - 1
      if (left === 0) this.#ofKey.delete(key)
      else this.#ofKey.set(key, left)
    })
  }
}
