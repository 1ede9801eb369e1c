import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { settleVm } from './machine.ts'
import { change, type Nic, read } from './state.ts'

/**
 * The process of a machine that runs: its serial port as VirtualBox serves it, and a guest that says hello on it and on every
 * adapter with a cable, and answers what it is sent. The console's lines `poweroff` and `crash` are obeyed.
 */
const [directory = '', uuid = ''] = process.argv.slice(2)
const control = join(directory, `${uuid}.ctl`)
const machine = read(directory).machines.find((each) => each.uuid === uuid)
if (machine === undefined) throw new Error(`no machine ${uuid}`)
const { name, uart, obeys } = machine

/** What is on the wire of one adapter. */
interface Wire {
  readonly socket: UdpSocket
  readonly port: number
  nic: Nic
}
const wires = new Map<number, Wire>()
let isPaused = false

const udp = (nic: Nic | undefined) =>
  nic?.enabled === true && nic.attachment === 'generic' && nic.driver === 'UDPTunnel'

async function rewire(nics: readonly Nic[]): Promise<void> {
  for (const [index, nic] of nics.entries()) {
    const before = wires.get(index)
    const port = udp(nic) && !isPaused ? Number(nic.properties.sport ?? 4444) : undefined
    if (before !== undefined && before.port !== port) {
      wires.delete(index)
      before.socket.close()
    }
    if (port === undefined) continue
    const wire = wires.get(index) ?? (await open(index, port, nic))
    const hadCable = wire.nic !== nic && wire.nic.cable
    wire.nic = nic
    if (nic.cable && !hadCable) send(wire, hello(index, nic))
  }
}

function open(index: number, port: number, nic: Nic): Promise<Wire> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4')
    const wire: Wire = { socket, port, nic: { ...nic, cable: false } }
    socket.once('error', reject)
    socket.on('message', (frame) => answer(wire, frame))
    // As VirtualBox: on every interface.
    socket.bind(port, () => {
      socket.off('error', reject)
      socket.on('error', () => {})
      wires.set(index, wire)
      resolve(wire)
    })
  })
}

const macOf = (nic: Nic) => Buffer.from(nic.mac, 'hex')

function hello(index: number, nic: Nic): Buffer {
  const frame = Buffer.alloc(60)
  frame.fill(0xff, 0, 6)
  macOf(nic).copy(frame, 6)
  frame.writeUInt16BE(0x88b5, 12)
  frame.write(`hello from ${name}/${index}`, 14, 46)
  return frame
}

/** What is for it, or for everybody, comes back to its sender. */
function answer(wire: Wire, frame: Buffer): void {
  const mac = macOf(wire.nic)
  const isMine = frame.length >= 14 && (mac.equals(frame.subarray(0, 6)) || frame.readUIntBE(0, 6) === 0xffffffffffff)
  if (!wire.nic.cable || !isMine) return
  send(wire, Buffer.concat([frame.subarray(6, 12), mac, frame.subarray(12)]))
}

function send({ socket, nic }: Wire, frame: Buffer): void {
  socket.send(frame, Number(nic.properties.dport ?? 4445), nic.properties.dest ?? '127.0.0.1', () => {})
}

let client: Socket | undefined
const banner = `\r\n${name} ready\r\nlogin: `

/** One client at a time; what is said while there is none is lost. */
function serve(): Promise<Server | undefined> {
  const [mode, path = ''] = uart.mode.split(/,(.*)/s)
  if (!uart.on || mode !== 'server') return Promise.resolve(undefined)
  rmSync(path, { force: true })
  const server = createServer((socket) => {
    if (client !== undefined) return void socket.destroy()
    client = socket
    socket.on('error', () => {})
    socket.once('close', () => {
      client = undefined
    })
    socket.write(banner)
    let line = ''
    socket.on('data', (bytes) => {
      socket.write(bytes)
      const lines = (line + bytes.toString('latin1')).split(/[\r\n]+/)
      line = lines.pop() ?? ''
      for (const said of lines) obey(said)
    })
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve(server))
  })
}

function obey(said: string): void {
  if (said === 'poweroff') ended('poweroff')
  if (said === 'crash') process.kill(process.pid, 'SIGKILL')
}

/** The guest has switched it off. */
function ended(state: 'poweroff'): void {
  change(directory, (all) => {
    const mine = all.machines.find((each) => each.uuid === uuid)
    if (mine !== undefined) settleVm(all, mine, state)
  })
  leave()
}

let serial: Server | undefined

function leave(): void {
  if (serial !== undefined) rmSync(uart.mode.slice('server,'.length), { force: true })
  rmSync(control, { force: true })
  process.exit(0)
}

interface Order {
  readonly op: 'end' | 'button' | 'pause' | 'resume' | 'reset' | 'nics'
  readonly nics?: readonly Nic[]
}

async function follow({ op, nics }: Order): Promise<void> {
  if (op === 'pause' || op === 'resume') isPaused = op === 'pause'
  if (op === 'reset') client?.write(banner)
  if (nics !== undefined) await rewire(nics)
  if (op === 'button' && obeys) setTimeout(() => ended('poweroff'), 30)
}

const orders = createServer((socket) => {
  let text = ''
  socket.on('error', () => {})
  socket.on('data', (bytes) => {
    text += bytes.toString('utf8')
    if (!text.endsWith('\n')) return
    const order = JSON.parse(text) as Order
    text = ''
    if (order.op === 'end') return leave()
    follow(order).then(
      () => socket.end('done\n'),
      (error: Error) => socket.end(`${error.message}\n`),
    )
  })
})

async function main(): Promise<void> {
  await rewire(machine?.nics ?? [])
  serial = await serve()
  rmSync(control, { force: true })
  orders.listen(control, () => process.stdout.write('ready\n'))
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
})
