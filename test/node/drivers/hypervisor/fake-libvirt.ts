import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import {
  encodeMessage,
  type Message,
  MessageReader,
  messageTypes,
  procedures,
  remoteProgram,
} from '../../../../runtime/node/drivers/hypervisor/libvirt/protocol.ts'
import { XdrWriter } from '../../../../runtime/node/drivers/hypervisor/libvirt/xdr.ts'
import { freshDirectory } from '../../../support/directory.ts'

type Answer = (message: Message, libvirt: FakeLibvirt) => XdrWriter | undefined

/** A daemon that says what a test wants; without an answer it says nothing. */
export class FakeLibvirt {
  readonly path: string
  /** What was called, in order. */
  readonly calls: Message[] = []
  readonly #answers: Readonly<Record<number, Answer>>
  #server: Server | undefined
  readonly #clients = new Set<Socket>()

  private constructor(path: string, answers: Readonly<Record<number, Answer>>) {
    this.path = path
    this.#answers = answers
  }

  static async start(answers: Readonly<Record<number, Answer>> = {}): Promise<FakeLibvirt> {
    const libvirt = new FakeLibvirt(join(await freshDirectory(), 'libvirt-sock'), { ...welcoming, ...answers })
    await libvirt.listen()
    onTestFinished(() => libvirt.end())
    return libvirt
  }

  get uri(): string {
    return `qemu:///system?socket=${this.path}`
  }

  async listen(): Promise<void> {
    const server = createServer((socket) => this.#serve(socket))
    this.#server = server
    await new Promise<void>((resolve) => server.listen(this.path, resolve))
  }

  /** Ends, as a daemon that crashes. */
  async end(): Promise<void> {
    const gone = new Promise((resolve) => this.#server?.close(resolve))
    this.drop()
    await gone
  }

  drop(): void {
    for (const client of this.#clients) client.destroy()
  }

  /** Tells every client something that it did not ask for. */
  tell(procedure: number, payload: XdrWriter, program = remoteProgram): void {
    const type = messageTypes.message
    this.send(encodeMessage({ program, procedure, type, serial: 0, isError: false, payload: payload.bytes }))
  }

  send(bytes: Buffer | string): void {
    for (const client of this.#clients) client.write(bytes)
  }

  reply({ program, procedure, serial }: Message, payload: XdrWriter, isError = false): void {
    this.send(encodeMessage({ program, procedure, serial, type: messageTypes.reply, isError, payload: payload.bytes }))
  }

  #serve(socket: Socket): void {
    const reader = new MessageReader()
    this.#clients.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => this.#clients.delete(socket))
    socket.on('data', (bytes) => {
      for (const message of reader.push(bytes as Buffer)) {
        this.calls.push(message)
        const answer = this.#answers[message.procedure]?.(message, this)
        if (answer !== undefined) this.reply(message, answer)
      }
    })
  }
}

/** remote_error. */
export const refusal = (number: number, words: string): XdrWriter =>
  new XdrWriter().int(number).int(10).maybeString(words).int(2)

/** Lets everybody in, and has no VM. */
const welcoming: Readonly<Record<number, Answer>> = {
  [procedures.authList]: () => new XdrWriter().uint(1).int(0),
  [procedures.connectOpen]: () => new XdrWriter(),
  [procedures.connectDomainEventCallbackRegisterAny]: () => new XdrWriter().int(1),
  [procedures.connectListAllDomains]: () => new XdrWriter().uint(0).uint(0),
}
