import { once } from 'node:events'
import ssh2, { type Client, type ClientChannel, type ConnectConfig, type PseudoTtyOptions } from 'ssh2'
import { onTestFinished } from 'vitest'
import type { AccessTokenCreate } from '../../src/model/access/access-token.ts'
import type { TestService } from './service.ts'

/** A key pair, as files of OpenSSH have it. */
export const newKey = () => ssh2.utils.generateKeyPairSync('ed25519')

/** A token with a public key: its id, the id of the key, and the private key. */
export async function tokenWithKey(service: Pick<TestService, 'call'>, fields: Partial<AccessTokenCreate> = {}) {
  const key = newKey()
  const token = { name: 'ann', role: 'operate', ...fields }
  const { token_id } = await service.call<{ token_id: string }>('POST', '/v2/tokens', token)
  const body = { public_key: key.public }
  const { key_id } = await service.call<{ key_id: string }>('POST', `/v2/tokens/${token_id}/ssh_keys`, body)
  return { token_id, key_id, privateKey: key.private }
}

/** A client that has logged in; rejects when it is not let in. It is ended when the test ends. */
export async function sshClient(options: ConnectConfig): Promise<Client> {
  const client = new ssh2.Client()
  onTestFinished(() => void client.end())
  const ready = once(client, 'ready')
  client.connect({ host: '127.0.0.1', ...options })
  await ready
  return client
}

/** A session with what it showed, also as errors. */
export class SshSession {
  readonly channel: ClientChannel
  readonly closed: Promise<number | null>
  shown = ''
  #wake = () => {}

  constructor(channel: ClientChannel) {
    this.channel = channel
    let code: number | null = null
    channel.on('exit', (exit: number | null) => {
      code = exit
    })
    this.closed = once(channel, 'close').then(() => code)
    for (const stream of [channel, channel.stderr])
      stream.on('data', (bytes: Buffer) => {
        this.shown += bytes.toString()
        this.#wake()
      })
  }

  static shell(client: Client, window: PseudoTtyOptions = {}): Promise<SshSession> {
    return new Promise((resolve, reject) =>
      client.shell(window, (error, channel) => (error ? reject(error) : resolve(new SshSession(channel)))),
    )
  }

  static exec(client: Client, line: string): Promise<SshSession> {
    return new Promise((resolve, reject) =>
      client.exec(line, (error, channel) => (error ? reject(error) : resolve(new SshSession(channel)))),
    )
  }

  /** Resolves when it has shown a text so many times. */
  async shows(text: string, times = 1): Promise<void> {
    while (this.shown.split(text).length <= times) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}
