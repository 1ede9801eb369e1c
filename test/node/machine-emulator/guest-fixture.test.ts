import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { encode, greeting } from '../../../runtime/node/keeper/telnet.ts'
import type { Wire } from '../../../runtime/node/kinds/kind.ts'
import { resolveEmulator } from '../../../runtime/node/kinds/machine-emulator/binaries.ts'
import { commandLine } from '../../../runtime/node/kinds/machine-emulator/command-line.ts'
import type { BinaryFacts } from '../../../runtime/node/kinds/machine-emulator/probe.ts'
import { GuestShell } from '../../support/guest/console.ts'
import { guestCommandLine, guestFiles, guestRam, requireGuest } from '../../support/guest/files.ts'
import { linkUp, ping, transfer } from '../../support/guest/network.ts'
import { machine, type Wanted } from './machine.ts'
import { monitor, type RunningQemu, startQemu, temporaryDirectory } from './qemu-process.ts'

const { skip } = await requireGuest()
const guestTest = test.skipIf(skip)
/** For two slow processors that have other tests to run as well. */
const ms = 240_000

let facts: BinaryFacts
beforeAll(async () => {
  if (!skip) facts = await resolveEmulator({ platform: 'x86_64' }, false)
})

interface Guest {
  readonly qemu: RunningQemu
  readonly shell: GuestShell
}

/** A guest on the way to its prompt. */
async function boot(words: string, { settings, ...wanted }: Wanted, directory?: string): Promise<Guest> {
  const socket = join(directory ?? (await temporaryDirectory()), 'qmp.sock')
  const args = commandLine(
    machine({
      ...{ facts, accelerator: 'tcg', ...(await guestFiles()), monitor: socket, isPaused: false, ...wanted },
      settings: { ram: guestRam, kernel_command_line: guestCommandLine(words), ...settings },
    }),
  )
  const qemu = startQemu(socket, args)
  return { qemu, shell: await GuestShell.connect(await telnetPort(qemu)) }
}

/** A console as the service has it: telnet, and a new client sees what was shown before. */
async function telnetPort({ child }: RunningQemu): Promise<number> {
  let shown = Buffer.alloc(0)
  const clients = new Set<Socket>()
  child.stdout?.on('data', (bytes: Buffer) => {
    shown = Buffer.concat([shown, bytes])
    for (const client of clients) client.write(encode(bytes))
  })
  const server = createServer((client) => {
    clients.add(client.on('error', () => {}))
    client.write(Buffer.concat([greeting, encode(shown)]))
    client.on('data', (bytes) => child.stdin?.write(bytes))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => {
    for (const client of clients) client.destroy()
    server.close()
  })
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** The wires of two guests that are connected to each other. */
async function crossed(): Promise<readonly [ReadonlyMap<string, Wire>, ReadonlyMap<string, Wire>]> {
  const sockets = [createSocket('udp4'), createSocket('udp4')]
  for (const socket of sockets) {
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
  }
  const [first = 0, second = 0] = sockets.map((socket) => socket.address().port)
  await Promise.all(sockets.map((socket) => new Promise<void>((resolve) => socket.close(resolve))))
  const wire = (guest_port: number, switch_port: number) => new Map([['0/0', { guest_port, switch_port }]])
  return [wire(first, second), wire(second, first)]
}

guestTest('two guests reach each other, and what one sends arrives', { timeout: ms }, async () => {
  const [left, right] = await crossed()
  const [a, b] = await Promise.all([
    boot('pb.host=a pb.ip=10.0.0.1/24', { adapters: 1, model: 'e1000', wires: left }),
    boot('pb.host=b pb.ip=10.0.0.2/24', {
      ...{ adapters: 1, model: 'virtio-net-pci', wires: right, options: '-machine q35' },
    }),
  ])
  await Promise.all([a.shell.ready(), b.shell.ready()])
  expect(await a.shell.run('hostname')).toBe('a')
  await Promise.all([linkUp(a.shell), linkUp(b.shell)])
  const pings = await ping(a.shell, '10.0.0.2', 3)
  expect(pings).toEqual({ received: 3, ms: [expect.any(Number), expect.any(Number), expect.any(Number)] })
  const there = await transfer(a.shell, b.shell, '10.0.0.2', 4)
  expect(there.bytes).toBe(4 * 2 ** 20)
  expect(there.ms).toBeGreaterThan(0)
  expect((await transfer(b.shell, a.shell, '10.0.0.1', 1)).bytes).toBe(2 ** 20)
})

guestTest('disks keep what was written, and the power button ends the guest', { timeout: ms }, async () => {
  const directory = await temporaryDirectory()
  const disks = (['virtio', 'ide'] as const).map((as, n) => {
    const path = join(directory, `${as}.qcow2`)
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', path, '8M'])
    return { slot: n === 0 ? ('hda' as const) : ('hdb' as const), path, format: 'qcow2', interface: as }
  })
  const { shell, qemu } = await boot('', { disks }, directory)
  const qmp = await monitor(qemu.socket, 30_000)
  await shell.ready()

  const counted = Number(await shell.run('cat /tmp/counter'))
  await shell.until(`[ $(cat /tmp/counter) -gt ${counted + 1} ]`)
  expect(await shell.attempt('echo why; false')).toEqual({ code: 1, output: 'why' })
  await expect(shell.run('ls /nowhere')).rejects.toThrow(/exit code 1.*No such file/)

  for (const disk of ['vda', 'sda']) {
    await shell.run(`mke2fs /dev/${disk} && mount -t ext2 /dev/${disk} /mnt`)
    await shell.run(`echo on ${disk} >/mnt/file && umount /mnt`)
  }
  shell.send('reboot -f\n')
  await shell.ready()
  for (const disk of ['vda', 'sda']) {
    expect(await shell.run(`mount -t ext4 /dev/${disk} /mnt && cat /mnt/file && umount /mnt`)).toBe(`on ${disk}`)
  }

  const over = qmp.nextEvent(({ event }) => event === 'SHUTDOWN', 30_000)
  await qmp.execute('system_powerdown', {}, 5000)
  expect(await over).toMatchObject({ data: { guest: true, reason: 'guest-shutdown' } })
  expect(await qemu.ended).toBe(0)
})
