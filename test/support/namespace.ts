import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import { python3 } from './python.ts'

const run = promisify(execFile)
let made = 0

/** A name for a namespace or a device that no other test has. */
export const freshName = (): string => `pbt${process.pid.toString(36)}x${++made}`

/** `ip` with these arguments, in one text; what it prints. */
export async function ip(args: string): Promise<string> {
  return (await run('ip', args.split(' '))).stdout
}

/** Commands of `ip`, one after the other in one process. */
async function ipAll(where: readonly string[], ...commands: readonly string[]): Promise<string> {
  const running = run('ip', [...where, '-batch', '-'])
  running.child.stdin?.end(`${commands.join('\n')}\n`)
  return (await running).stdout
}

/** Removes a device when the test ends, if it is still there. */
export function removeLater(device: string): void {
  onTestFinished(async () => {
    // That of a namespace may go at any time.
    if (existsSync(`/sys/class/net/${device}`)) await ip(`link del ${device}`).catch(() => {})
  })
}

/** A network namespace: a host beside the lab. */
export class Namespace {
  readonly name: string

  private constructor(name: string) {
    this.name = name
  }

  /** It and its devices are gone when the test ends. */
  static async make(): Promise<Namespace> {
    const it = new Namespace(freshName())
    await ip(`netns add ${it.name}`)
    onTestFinished(() => ip(`netns del ${it.name}`).then(() => {}))
    await it.ip('link set lo up')
    return it
  }

  ip(args: string): Promise<string> {
    return ip(`-n ${this.name} ${args}`)
  }

  /** Runs a program in it; what that prints. */
  async run(command: string, ...args: readonly string[]): Promise<string> {
    return (await run('ip', ['netns', 'exec', this.name, command, ...args])).stdout
  }

  /** Starts one; it is ended with the test. Standard output is a pipe. */
  start(command: string, ...args: readonly string[]): ChildProcess {
    return start('ip', ['netns', 'exec', this.name, command, ...args])
  }

  /** A pair of devices, the end `inside` in the namespace; both are up, without addresses, and can send. */
  async veth(mtu = 1500, outside = freshName()): Promise<{ outside: string; inside: string }> {
    const inside = freshName()
    removeLater(outside)
    await ipAll(
      [],
      `link add ${outside} mtu ${mtu} type veth peer name ${inside} mtu ${mtu} netns ${this.name}`,
      // Otherwise this host answers for addresses that it has on other devices.
      `link set ${outside} arp off`,
      ...up(outside),
    )
    await ipAll(['-n', this.name], ...up(inside))
    // The kernel gives a device its queue when it learns of the carrier, which comes with the other end. Until then frames are lost.
    await ready([], outside)
    await ready(['-n', this.name], inside)
    return { outside, inside }
  }

  /** Brings a TAP of the host into it, with addresses. */
  async take(device: string, ...addresses: readonly string[]): Promise<void> {
    await ip(`link set ${device} netns ${this.name}`)
    await ipAll(['-n', this.name], ...up(device), ...addresses.map((address) => addition(device, address)))
  }

  async address(device: string, address: string): Promise<void> {
    await this.ip(addition(device, address))
  }

  /** Raw frames at a device in it. */
  wire(device: string): Promise<Wire> {
    return Wire.open(this.start(python3, wireProgram, device))
  }
}

/** Without the addresses that a device makes for itself, nor the frames that go with those. */
const up = (device: string): string[] => [`link set ${device} addrgenmode none`, `link set ${device} up`]

const addition = (device: string, address: string): string =>
  `addr add ${address} dev ${device}${address.includes(':') ? ' nodad' : ''}`

/** Resolves when a device that is up can send. */
async function ready(where: readonly string[], device: string): Promise<void> {
  for (let tries = 0; !(await ipAll(where, `link show ${device}`)).includes(' state UP '); tries++) {
    if (tries === 1000) throw new Error(`${device} has no carrier`)
    await delay(10)
  }
}

const wireProgram = join(import.meta.dirname, 'wire.py')

/** Raw frames at a device of this host. */
export const wireOf = (device: string): Promise<Wire> => Wire.open(start(python3, [wireProgram, device]))

/** A packet socket of another program, with which what we do is compared. */
export class Wire {
  readonly got: Buffer[] = []
  readonly #program: ChildProcess
  #wake = () => {}

  private constructor(program: ChildProcess) {
    this.#program = program
  }

  static async open(program: ChildProcess): Promise<Wire> {
    const it = new Wire(program)
    if (program.stdout === null) throw new Error('no pipe')
    const lines = createInterface({ input: program.stdout })
    await once(lines, 'line')
    lines.on('line', (line) => {
      it.got.push(Buffer.from(line, 'hex'))
      it.#wake()
    })
    return it
  }

  async next(): Promise<Buffer> {
    for (;;) {
      const frame = this.got.shift()
      if (frame !== undefined) return frame
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Sends a frame; the header says what the device is to do to it (struct virtio_net_hdr). */
  send(frame: Uint8Array, header: Uint8Array = new Uint8Array(10)): void {
    this.#program.stdin?.write(`${Buffer.concat([header, frame]).toString('hex')}\n`)
  }
}

function start(command: string, args: readonly string[]): ChildProcess {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  return child
}
