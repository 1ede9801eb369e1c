import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface, type Interface } from 'node:readline'
import { expect, onTestFinished } from 'vitest'

/** Options that let a test look at the hardware as the guest does, while the monitor is the service's. */
export const hardwareOptions = (socket: string): string =>
  `-qtest unix:${socket},server=on,wait=off -qtest-log /dev/null`

/** Registers of a PC by the test protocol of QEMU: a line a question. */
export class GuestHardware {
  readonly #socket: Socket
  readonly #lines: AsyncIterator<string>

  private constructor(socket: Socket, lines: Interface) {
    this.#socket = socket
    this.#lines = lines[Symbol.asyncIterator]()
    onTestFinished(() => void socket.destroy())
  }

  static async open(path: string): Promise<GuestHardware> {
    const socket = connect(path)
    await once(socket, 'connect')
    return new GuestHardware(socket, createInterface({ input: socket }))
  }

  /** Whether an e1000 in a PCI slot has a cable: the link-up bit of its status register. */
  async hasCable(slot: number): Promise<boolean> {
    const bar = await this.#pci(slot, 0x10)
    return ((await this.#ask(`readl ${bar - (bar % 16) + 8}`)) & 2) !== 0
  }

  /** Resolves when the cards in these slots, beginning with slot 2, have a cable or none. */
  async shows(...cables: readonly boolean[]): Promise<void> {
    const read = async () => {
      const seen: boolean[] = []
      for (const index of cables.keys()) seen.push(await this.hasCable(2 + index))
      return seen
    }
    await expect.poll(read, { interval: 20 }).toEqual(cables)
  }

  /** A register of the configuration space of a device. */
  async #pci(slot: number, register: number): Promise<number> {
    await this.#ask(`outl 0xcf8 ${0x80000000 + slot * 0x800 + register}`)
    return this.#ask('inl 0xcfc')
  }

  async #ask(question: string): Promise<number> {
    this.#socket.write(`${question}\n`)
    for (;;) {
      const { value, done } = await this.#lines.next()
      if (done) throw new Error('the emulator has ended')
      if (!value.startsWith('OK')) continue
      return Number.parseInt(value.slice(3) || '0', 16)
    }
  }
}
