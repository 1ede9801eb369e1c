import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished } from 'vitest'
import { libslirpVersion } from '../../../../runtime/node/drivers/nat/libslirp.ts'
import { otherUid } from '../../../support/confined.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { freshName, ip, Namespace, removeLater } from '../../../support/namespace.ts'
import { python3 } from '../../../support/python.ts'
import { requireThing } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import type { Requirement } from '../../../support/test-with.ts'

const run = promisify(execFile)

/** A server beside this host, in a namespace, with the web at port 80. */
export interface Outside {
  readonly space: Namespace
  /** Addresses of the server that are of nobody (the former 6to4 relays, RFC 7534), and a private one. */
  readonly four: string
  readonly six: string
  readonly private: string
  /** Another address in its network, and those of this host and of all there. */
  readonly spare: string
  readonly host: { readonly four: string; readonly six: string; readonly private: string; readonly broadcast: string }
  readonly network: string
  /** The resolver of this host is on its loopback, as it often is. */
  readonly resolver: string
}

/** Networks for so many tests at the same time; each has the device of its number. */
const maxOutside = 31

export async function outside(): Promise<Outside> {
  const space = await Namespace.make()
  for (let number = 1; number <= maxOutside; number++) {
    const [ours, theirs] = [`pbtnat${number}`, freshName()]
    try {
      await ip(`link add ${ours} type veth peer name ${theirs} netns ${space.name}`)
    } catch {
      continue
    }
    removeLater(ours)
    await ip(`link set ${ours} up`)
    await space.ip(`link set ${theirs} up`)
    const start = 8 * number
    const four = (last: number) => `192.88.99.${start + last}`
    const six = (last: number) => `2620:4f:8000:${number}::${last}`
    const own = (last: number) => `10.213.${number}.${last}`
    for (const address of [`${four(1)}/29`, `${six(1)}/64 nodad`, `${own(1)}/24`])
      await ip(`addr add ${address} dev ${ours}`)
    for (const address of [`${four(2)}/29`, `${six(2)}/64`, `${own(2)}/24`]) await space.address(theirs, address)
    await serve(space, '::', 80)
    const host = { four: four(1), six: six(1), private: own(1), broadcast: four(7) }
    const server = { four: four(2), six: six(2), private: own(2), spare: four(3), network: `${four(0)}/29` }
    return { space, ...server, host, resolver: `127.0.77.${start}` }
  }
  throw new Error('too many tests of nats run at the same time')
}

/** Serves a page that says `hello` by HTTP in a namespace. */
async function serve(where: Namespace, address: string, port: number): Promise<void> {
  const directory = await freshDirectory()
  await writeFile(join(directory, 'hello'), 'hello from outside')
  // It writes a line for each request to standard error, and a trace for each client that goes.
  const quiet = `exec ${python3} -u -m http.server -d "$0" -b "$1" "$2" 2>/dev/null`
  const program = where.start('sh', '-c', quiet, directory, address, String(port))
  if (program.stdout !== null) await once(program.stdout, 'data')
}

/** A resolver on the loopback of this host that answers each question with the address of the server. */
export async function nameServer({ four, resolver }: Outside): Promise<{ readonly asked: string[] }> {
  const asked: string[] = []
  const socket = createSocket('udp4')
  onTestFinished(() => void socket.close())
  socket.bind(53, resolver)
  await once(socket, 'listening')
  socket.on('message', (query, { address, port }) => {
    asked.push(query.subarray(12).toString('latin1'))
    const question = query.subarray(12, query.indexOf(0, 12) + 5)
    const isFour = question.readUInt16BE(question.length - 4) === 1
    const rest = Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...four.split('.').map(Number)])
    const head = Buffer.from([query[0] ?? 0, query[1] ?? 0, 0x81, 0x80, 0, 1, 0, isFour ? 1 : 0, 0, 0, 0, 0])
    socket.send(Buffer.concat([head, question, ...(isFour ? [rest] : [])]), port, address)
  })
  return { asked }
}

/** Starts a service whose host asks that resolver, and no other. */
export async function natService(
  { resolver }: Outside,
  settings: Record<string, unknown> = {},
  more: readonly string[] = [],
): Promise<TestService> {
  const file = join(await freshDirectory(), 'resolv.conf')
  // The first one is not there.
  await writeFile(file, `nameserver 127.0.77.1\nnameserver ${resolver}\n`)
  // Users may have TAPs on most hosts, but not on all machines that tests run on.
  const mounts =
    'mount --bind "$0" /etc/resolv.conf && { test -e "$0.tun" || mknod -m 666 "$0.tun" c 10 200; } && mount --bind "$0.tun" /dev/net/tun'
  const launcher = ['unshare', '--mount', 'sh', '-c', `${mounts} && exec "$@"`, file, ...more]
  return TestService.start(settings, launcher)
}

export interface NatLab {
  readonly service: TestService
  readonly project: string
  readonly nat: string
}

export async function natLab(service: TestService, settings: Record<string, unknown> = {}): Promise<NatLab> {
  const { project_id } = await service.call('POST', '/v2/compute/projects', { name: `lab ${randomUUID()}` })
  const project = `/v2/compute/projects/${project_id}`
  const { node_id } = await service.call('POST', `${project}/nat/nodes`, { name: 'inet', ...settings })
  return { service, project, nat: `${project}/nat/nodes/${node_id}` }
}

/** A guest of a nat: a namespace behind a TAP that its port is linked with. It has no address yet. */
export async function guestAt({ service, nat }: NatLab, port = 0): Promise<Guest> {
  const space = await Namespace.make()
  const device = freshName()
  // Of a user without privileges, as those who may have TAPs make them.
  await ip(`tuntap add dev ${device} mode tap user ${otherUid}`)
  removeLater(device)
  await ip(`link set ${device} up`)
  await service.call('POST', `${nat}/adapters/0/ports/${port}/nio`, { type: 'nio_tap', tap_device: device })
  await space.take(device)
  return new Guest(space, device)
}

export class Guest {
  readonly space: Namespace
  readonly device: string

  constructor(space: Namespace, device: string) {
    this.space = space
    this.device = device
  }

  /** Sets addresses by hand, with .1 as the gateway. */
  async address(four: string): Promise<void> {
    await this.space.address(this.device, `${four}/24`)
    await this.space.ip(`route add default via ${four.replace(/\d+$/, '1')}`)
  }

  /** Has the guest make itself an IPv6 address of the network that the router tells. */
  async advertised(prefix: string): Promise<void> {
    await this.space.ip(`link set ${this.device} down`)
    await this.space.ip(`link set ${this.device} addrgenmode eui64`)
    await this.space.ip(`link set ${this.device} up`)
    const addresses = () => this.space.ip(`-6 addr show dev ${this.device} -tentative`)
    await expect.poll(addresses).toContain(prefix)
    await expect.poll(() => this.space.ip('-6 route')).toContain('default via fe80::2')
  }

  /** Serves a page at port 80. */
  serve(): Promise<void> {
    return serve(this.space, '::', 80)
  }

  /** Sends back each datagram to a port. */
  echo(port: number): Promise<void> {
    return echoAt(this.space, port)
  }

  /** Fetches a page; its text, or the reason why there is none. */
  async fetch(address: string, port = 80): Promise<string> {
    const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}/hello`
    return this.try('curl', '-sS', '--max-time', '10', url)
  }

  /** What a program prints; when it fails, its words. */
  async try(command: string, ...args: readonly string[]): Promise<string> {
    try {
      return await this.space.run(command, ...args)
    } catch (error) {
      return `failed: ${(error as { stderr?: string }).stderr ?? ''}`
    }
  }
}

/** Sends back each datagram to a port of a namespace. */
export async function echoAt(where: Namespace, port: number): Promise<void> {
  const program = where.start(python3, '-uc', echo, String(port))
  if (program.stdout !== null) await once(program.stdout, 'data')
}

const echo = `import socket, sys
sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
sock.bind(('::', int(sys.argv[1])))
print('ready')
while True:
    data, peer = sock.recvfrom(2048)
    sock.sendto(data, peer)`

/** Sends a datagram to a port of the loopback, and prints the answer. */
export const askByUdp = `import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(10)
sock.sendto(b'hello?', ('127.0.0.1', int(sys.argv[1])))
print(sock.recv(2048).decode())`

export const requireLibslirp = (): Requirement => {
  try {
    libslirpVersion()
    return requireThing('libslirp', undefined)
  } catch {
    return requireThing('libslirp', 'libslirp is not installed')
  }
}

/** Has users of this host ping until the test ends. */
export async function letPing(): Promise<void> {
  const file = '/proc/sys/net/ipv4/ping_group_range'
  const before = await readFile(file, 'utf8')
  await writeFile(file, '0 2147483647')
  onTestFinished(() => writeFile(file, before))
}

/** Runs a program on this host; what it prints. */
export const onHost = async (command: string, ...args: readonly string[]): Promise<string> =>
  (await run(command, args)).stdout

/** The pid of the process of a nat. */
export function pidOf(lab: NatLab): number {
  const id = lab.nat.split('/').at(-1) ?? ''
  const found = readdirSync('/proc').filter((pid) => {
    try {
      const isNode = readFileSync(`/proc/${pid}/comm`, 'utf8') !== 'bwrap\n'
      return isNode && readlinkSync(`/proc/${pid}/cwd`).includes(id)
    } catch {
      return false
    }
  })
  const [pid] = found.map(Number).sort((a, b) => b - a)
  if (pid === undefined) throw new Error('the nat does not run')
  return pid
}

/** Asks DHCP as guests do; the address. */
export async function dhcp({ space, device }: Guest, ...more: readonly string[]): Promise<string> {
  const script = join(await freshDirectory(), 'bound')
  const lines = [
    '#!/bin/sh',
    '[ "$1" = bound ] || exit 0',
    'ip addr add "$ip/$mask" dev "$interface"; ip route add default via "$router"',
    'echo "ip=$ip mask=$mask router=$router dns=$dns lease=$lease"',
  ]
  await writeFile(script, lines.join('\n'))
  await chmod(script, 0o755)
  return space.run('busybox', 'udhcpc', '-n', '-q', '-f', '-t', '10', '-T', '1', '-i', device, '-s', script, ...more)
}
