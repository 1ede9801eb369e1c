import { once } from 'node:events'
import { connect } from 'node:net'
import { reasonOf } from '../system/error-reason.ts'
import { TelnetStripper } from '../system/telnet.ts'

const leaveKey = 0x1d
const connectMs = 5000
/** Piped: the guest has said all there is when it has been quiet for so long. */
const quietMs = 1500

/** `patchbay console [HOST:]PORT`: a raw terminal on a telnet console. Piped, it sends its input and shows the output. */
export async function consoleCommand([target, ...more]: readonly string[]): Promise<number> {
  const [, host = '127.0.0.1', port] = /^(?:\[?([^\]]+?)\]?:)?(\d{1,5})$/.exec(target ?? '') ?? []
  if (port === undefined || more.length > 0 || Number(port) === 0 || Number(port) > 65_535) {
    const got =
      target === undefined ? '' : `patchbay: expected the port of a console, got ${[target, ...more].join(' ')}\n`
    process.stderr.write(
      `${got}usage: patchbay console [HOST:]PORT\nThe port is "console" in what the service answers for a node.\n`,
    )
    return 2
  }
  const socket = connect({ host, port: Number(port), timeout: connectMs })
  try {
    await Promise.race([
      once(socket, 'connect'),
      once(socket, 'timeout').then(() => {
        throw new Error('there was no answer in time')
      }),
    ])
  } catch (error) {
    const hint = 'Is the node started, and is that its "console"? The list of the nodes of its project tells.'
    process.stderr.write(`patchbay: ${host}:${port} does not answer: ${reasonOf(error)}. ${hint}\n`)
    return 1
  }
  socket.setTimeout(0)
  const { stdin } = process
  const isTerminal = stdin.isTTY === true
  if (isTerminal) {
    stdin.setRawMode(true)
    process.stderr.write(`Connected to ${host}:${port}; Ctrl-] leaves.\r\n`)
  }
  const stripper = new TelnetStripper()
  socket.on('data', (bytes) => process.stdout.write(stripper.strip(bytes)))
  stdin.on('data', (bytes: Buffer) => {
    if (isTerminal && bytes.includes(leaveKey)) socket.end()
    // IAC cannot be typed in UTF-8, so nothing has to be doubled.
    else socket.write(bytes)
  })
  // The end of piped input is not the end of what it makes the guest say.
  stdin.on('end', () => {
    const quiet = setTimeout(() => socket.end(), quietMs)
    socket.on('data', () => quiet.refresh())
    socket.on('close', () => clearTimeout(quiet))
  })
  socket.on('error', () => {})
  await once(socket, 'close')
  if (isTerminal) stdin.setRawMode(false)
  return 0
}
