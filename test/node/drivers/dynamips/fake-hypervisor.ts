import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { Hypervisor } from '../../../../runtime/node/drivers/dynamips/hypervisor.ts'

export interface FakeHypervisor {
  readonly client: Hypervisor
  /** The commands that came, in order. */
  readonly commands: string[]
  /** The server's end. */
  readonly socket: Socket
}

/** A dynamips that answers with the lines of `answer`, and nothing where that is undefined. */
export async function fakeHypervisor(
  answer: (command: string, commands: readonly string[]) => readonly string[] | undefined,
): Promise<FakeHypervisor> {
  const commands: string[] = []
  const server = createServer()
  const listening = once(server, 'listening')
  server.listen({ port: 0, host: '127.0.0.1' })
  await listening
  const connected = once(server, 'connection') as Promise<[Socket]>
  const client = await Hypervisor.connect({ port: (server.address() as AddressInfo).port, ms: 1000 })
  const [socket] = await connected
  let rest = ''
  socket.on('error', () => {})
  socket.on('data', (bytes) => {
    const lines = (rest + bytes).split('\n')
    rest = lines.pop() ?? ''
    for (const command of lines) {
      commands.push(command)
      const said = answer(command, commands)
      if (said !== undefined) socket.write(said.map((line) => `${line}\r\n`).join(''))
    }
  })
  onTestFinished(() => {
    client.close()
    socket.destroy()
    server.close()
  })
  return { client, commands, socket }
}
