import { once } from 'node:events'
import { connect } from 'node:net'
import { reasonOf } from '../system/error-reason.ts'
import { TelnetStripper } from '../system/telnet.ts'
import { wrongArguments } from './exits.ts'

const leaveKey = 0x1d
const connectMs = 5000
/** With piped input, a guest without output for this time, ms, has answered everything. */
const quietMs = 1500

/** `patchbay console [HOST:]PORT`: a raw terminal on a telnet console. Piped, it sends its input and shows the output. */
export async function consoleCommand([target, ...more]: readonly string[]): Promise<number> {
  const [, host = '127.0.0.1', port] = /^(?:\[?([^\]]+?)\]?:)?(\d{1,5})$/.exec(target ?? '') ?? []
  if (port === undefined || more.length > 0 || Number(port) === 0 || Number(port) > 65_535) {
    throw wrongArguments(
      `expected the port of a console ([HOST:]PORT), got ${JSON.stringify([target, ...more].join(' '))}`,
      'the port is the member "console" of a node',
    )
  }
  const socket = connect({ host, port: Number(port), timeout: connectMs })
  try {
    socket.once('timeout', () => socket.destroy(new Error('there was no answer in time')))
    await once(socket, 'connect')
  } catch (error) {
    const hint = 'Is the node started, and is the port its "console"? The list of the nodes of the project shows both.'
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
    // UTF-8 text has no byte 255 (IAC), so no byte must be sent twice (RFC 854).
    else socket.write(bytes)
  })
  // The guest may still answer after the end of piped input.
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
