import { spawnSync } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { onTestFinished } from 'vitest'
import { TelnetStripper } from '../../runtime/node/os/system/telnet.ts'
import { type Bits, wordSize } from '../stand-in/iou/build.ts'
import { hangMs } from './limits.ts'
import { requireThing } from './require.ts'
import { provided, type Requirement } from './test-with.ts'

export { type Bits, standIn } from '../stand-in/iou/build.ts'

/**
 * What tests need that run the stand-in of an IOU image: `gcc`, and `gcc-multilib` for 32 bits, in the list of PATCHBAY_REQUIRE. A
 * stand-in that does not compile where other programs do is never skipped. No package cures a kernel that runs no programs of 32
 * bits: such a machine leaves their tests out, whatever that list has.
 */
export function requireGcc(bits: Bits = 64): Requirement {
  const { missing, isOfKernel = false } = compiles(bits)
  if (isOfKernel) return provided(false, missing ?? '')
  return requireThing(bits === 64 ? 'gcc' : 'gcc-multilib', missing)
}

/** A compiler may be there without the headers, and a kernel without the other word size: so a program is made and run. */
function compiles(bits: Bits): { missing?: string; isOfKernel?: boolean } {
  const directory = mkdtempSync(join(tmpdir(), 'patchbay-gcc-'))
  try {
    const input = '#include <stdio.h>\nint main(void) { return 0; }\n'
    const program = join(directory, 'program')
    const { error, status } = spawnSync('gcc', [...wordSize(bits), '-x', 'c', '-', '-o', program], {
      input,
      timeout: 60_000,
    })
    if (error !== undefined) return { missing: 'gcc is not installed' }
    const wanted = bits === 64 ? 'libc6-dev' : 'gcc-multilib'
    if (status !== 0) return { missing: `gcc cannot make ${bits}-bit programs (apt-get install ${wanted})` }
    const run = spawnSync(program)
    if (run.status === 0) return {}
    // A missing loader is an error of the start. What the kernel cannot execute is run by a shell instead, which fails.
    const isOfKernel = bits === 32 && run.error === undefined && run.signal === null
    return { missing: `${bits}-bit programs do not run here`, isOfKernel }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** A licence file that the stand-in takes on this host. The value is made up: only its form is looked at. */
export const iourc = (host = hostname(), value = '0123456789abcdef'): string => `[license]\n${host} = ${value};\n`

/** Where this user's instances have their sockets. */
export const netioDirectory = `/tmp/netio${process.getuid?.() ?? 0}`

let lastApplicationId = randomInt(400, 512)

/**
 * One that no instance of this user has; from 400 up, where a service that gives out the lowest does not come. They are given in
 * turn: a test takes several before any of them is in use.
 */
export function freeApplicationId(): number {
  for (;;) {
    lastApplicationId = lastApplicationId === 511 ? 400 : lastApplicationId + 1
    const id = lastApplicationId
    if (!['', '.lck'].some((end) => existsSync(join(netioDirectory, `${id}${end}`)))) return id
  }
}

const prompt = '[\\w.-]+(?:\\(config(?:-if)?\\))?[>#]'
/** Of what was seen, so much is in an error. */
const tail = 2000

/** The console of a stand-in. It prints no echo; whether its stream has telnet commands in it does not matter. */
export class IouConsole {
  readonly #stream: Duplex
  readonly #telnet = new TelnetStripper()
  readonly #text = new TextDecoder()
  /** What nothing waited for yet. */
  #seen = ''
  /** The end of all that was seen. */
  #tail = ''
  #wake: () => void = () => {}

  /** Whoever makes it closes the stream. */
  constructor(stream: Duplex) {
    this.#stream = stream
    stream.on('data', (bytes: Buffer) => {
      const text = this.#text.decode(this.#telnet.strip(bytes), { stream: true })
      this.#seen += text
      this.#tail = (this.#tail + text).slice(-tail)
      this.#wake()
    })
    stream.on('end', () => this.#wake())
    stream.on('close', () => this.#wake())
    stream.on('error', () => {})
  }

  /** Connects to a console; the connection does not outlive the test. */
  static async connect(port: number, host = '127.0.0.1'): Promise<IouConsole> {
    const socket = connect(port, host)
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    return new IouConsole(socket)
  }

  close(): void {
    this.#stream.destroy()
  }

  /** Types; a line needs its newline. */
  send(text: string): void {
    this.#stream.write(text)
  }

  /** What was shown up to and including the text; that much is then forgotten. Rejects after `ms`, or when the console closes. */
  async expect(text: string | RegExp, ms = hangMs): Promise<string> {
    const deadline = Date.now() + ms
    for (;;) {
      const found = typeof text === 'string' ? this.#seen.indexOf(text) : this.#seen.search(text)
      if (found >= 0) {
        const end = found + (typeof text === 'string' ? text.length : (text.exec(this.#seen)?.[0].length ?? 0))
        const upTo = this.#seen.slice(0, end)
        this.#seen = this.#seen.slice(end)
        return upTo
      }
      const left = deadline - Date.now()
      const isOver = this.#stream.readableEnded || this.#stream.destroyed
      const obstacle = isOver ? 'the console closed' : left <= 0 ? `nothing within ${ms} ms` : undefined
      if (obstacle !== undefined) throw new Error(`${text}: ${obstacle}; the last that was seen:\n${this.#tail}`)
      await this.#more(left)
    }
  }

  /**
   * What a command prints, with plain newlines and without the prompts. What was shown before is passed over, so it may be
   * the first that is done at a console that shows a new client its past.
   */
  async run(command: string, ms = hangMs): Promise<string> {
    const [start, end] = [randomBytes(6).toString('hex'), randomBytes(6).toString('hex')]
    this.send(`print ${start}\r${command}\rprint ${end}\r`)
    const shown = await this.expect(new RegExp(`${start}\r\n${prompt}[^]*${prompt}${end}\r\n${prompt}`), ms)
    const [, output = ''] = new RegExp(`${start}\r\n${prompt}([^]*?)${prompt}${end}\r\n`).exec(shown) ?? []
    return output.replaceAll('\r\n', '\n')
  }

  /** Does the lines in configuration mode, and leaves that; a line that is refused is an error. */
  async configure(...lines: readonly string[]): Promise<void> {
    await this.run('enable')
    for (const line of ['configure terminal', ...lines, 'end']) {
      const said = await this.run(line)
      if (said !== '') throw new Error(`${line}: ${said}`)
    }
  }

  /** An interface, up and with this address. */
  setAddress(name: string, address: string, mask = '255.255.255.0'): Promise<void> {
    return this.configure(`interface ${name}`, `ip address ${address} ${mask}`, 'no shutdown')
  }

  /** How many answers came. */
  async ping(address: string, { repeat = 5, size = 100, timeout = 2 } = {}): Promise<number> {
    const command = `ping ${address} repeat ${repeat} size ${size} timeout ${timeout}`
    const said = await this.run(command, 10_000 + repeat * timeout * 1000)
    const [, received] = /Success rate is \d+ percent \((\d+)\/\d+\)/.exec(said) ?? []
    if (received === undefined) throw new Error(`${command}: ${said}`)
    return Number(received)
  }

  /** Resolves when something came, or after the time. */
  #more(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
