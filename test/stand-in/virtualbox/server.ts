import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { execute, type Outcome } from './run.ts'

/**
 * Serves a world as VirtualBox's server does, so that `VBoxManage` (see `build.ts`) has not to start Node for every command.
 * It sends its pid, the number of its arguments, its locale and the arguments, each with a NUL behind it; the answer is a
 * line with the exit code, one with what goes to standard error, and what goes to standard output.
 */
export async function serve(directory: string): Promise<Server> {
  const server = createServer((socket) => {
    let text = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      text = Buffer.concat([text, bytes as Buffer])
      const [pid = '', count = '', locale = '', ...args] = text.toString('utf8').split('\0')
      // What comes behind the last NUL is nothing.
      if (count === '' || args.length !== Number(count) + 1) return
      void execute(directory, { args: args.slice(0, -1), locale, pid: Number(pid) }).then((outcome) =>
        tell(socket, outcome),
      )
    })
  })
  server.listen({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  writeFileSync(join(directory, 'server'), String((server.address() as AddressInfo).port))
  return server
}

function tell(socket: Socket, { code, stdout, stderr, never }: Outcome): void {
  if (never === 'hang') return
  socket.write(`${code}\n${stderr.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n`)
  if (never === undefined) return void socket.end(stdout)
  const flood = () => {
    while (!socket.destroyed && socket.write('x'.repeat(1 << 16)));
  }
  socket.on('drain', flood)
  flood()
}
