import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import ssh2, { type ClientChannel } from 'ssh2'
import { median, precise, target } from './medians.ts'
import { startService } from './service.ts'
import type { Row } from './table.ts'

const keys = 400
const rounds = 3
const sessions = 50
const seconds = 5
/** A key pressed by SSH may take this much longer than by telnet, ms; all sessions together get this much, MB/s. */
const maxMoreMs = 5
const leastMbPerSecond = 1
/** After so many keys the line is cleared, by Ctrl-U. */
const lineLength = 40

/** Consoles by SSH, beside telnet: a key until it is echoed, and the output that many sessions get together. */
export async function consoles(): Promise<Row[]> {
  const port = await freePort()
  const service = await startService('--pc-engine', 'embedded', '--ssh-port', String(port))
  try {
    const { project_id } = (await service.call('POST', '/v2/projects', { name: 'lab' })) as { project_id: string }
    const nodes = `/v2/projects/${project_id}/nodes`
    const made = (await service.call('POST', nodes, { name: 'PC1', node_type: 'pc' })) as Node
    await service.call('POST', `${nodes}/${made.node_id}/start`)
    const node = (await service.call('GET', `${nodes}/${made.node_id}`)) as Node
    const key = ssh2.utils.generateKeyPairSync('ed25519')
    const { token_id } = (await service.call('POST', '/v2/tokens', { name: 'bench', role: 'operate' })) as {
      token_id: string
    }
    await service.call('POST', `/v2/tokens/${token_id}/ssh_keys`, { public_key: key.public })
    const open = () => shell(port, key.private)

    const times = { telnet: [] as number[], ssh: [] as number[] }
    for (let round = 0; round < rounds; round++) {
      const telnet = connect(node.console, '127.0.0.1').setNoDelay(true)
      times.telnet.push(await echoed(telnet))
      telnet.destroy()
      const channel = await open()
      times.ssh.push(await echoed(channel))
      channel.close()
    }
    const [telnet, ssh] = [median(times.telnet), median(times.ssh)]
    const perSecond = await together(await Promise.all(Array.from({ length: sessions }, open)))
    return [
      [
        'a key by SSH until it is echoed, p50',
        precise(ssh),
        `telnet ${precise(telnet)}; ${target(ssh <= telnet + maxMoreMs, `${maxMoreMs} ms above telnet`)}`,
      ],
      [
        `output to ${sessions} sessions of a console together`,
        `${perSecond.toFixed(1)} MB/s`,
        target(perSecond >= leastMbPerSecond, `${leastMbPerSecond} MB/s`),
      ],
    ]
  } finally {
    await service.close()
  }
}

/** A port that nothing listened on just now. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

interface Node {
  readonly node_id: string
  readonly console: number
}

async function shell(port: number, privateKey: string): Promise<ClientChannel> {
  const client = new ssh2.Client()
  const ready = once(client, 'ready')
  client.connect({ host: '127.0.0.1', port, username: 'lab/PC1', privateKey })
  await ready
  // As OpenSSH does.
  client.setNoDelay(true)
  return new Promise((resolve, reject) => client.shell((error, channel) => (error ? reject(error) : resolve(channel))))
}

/** The median time from a key to its echo, ms. */
async function echoed(console: Duplex): Promise<number> {
  console.resume()
  await sleep(300)
  const times: number[] = []
  for (let index = 1; index <= keys; index++) {
    const isLast = index % lineLength === 0
    const began = performance.now()
    const echo = once(console, 'data')
    console.write(isLast ? '\u0015' : 'a')
    await echo
    if (isLast) await sleep(20)
    else times.push(performance.now() - began)
  }
  return median(times)
}

/** How much output all sessions of a console get in a second, MB, while one of them types. */
async function together(channels: readonly ClientChannel[]): Promise<number> {
  let total = 0
  for (const channel of channels)
    channel.on('data', (bytes: Buffer) => {
      total += bytes.length
    })
  await sleep(300)
  total = 0
  const line = `echo ${'x'.repeat(1000)}\r`.repeat(20)
  const began = performance.now()
  while (performance.now() < began + seconds * 1000) {
    const wanted = total + channels.length * line.length * 2
    channels[0]?.write(line)
    const until = performance.now() + seconds * 1000
    while (total < wanted && performance.now() < until) await sleep(5)
  }
  return total / 1000 / (performance.now() - began)
}
