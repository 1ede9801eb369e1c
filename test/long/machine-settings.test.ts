import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, onTestFinished } from 'vitest'
import { type Accelerator, acceleratorsOf, resolveEmulator } from '../../runtime/node/drivers/qemu/binaries.ts'
import { commandLine, netdevId } from '../../runtime/node/drivers/qemu/command-line.ts'
import { findImageTool, prepareOverlay } from '../../runtime/node/drivers/qemu/disks.ts'
import { firmwareOf, systemUefis } from '../../runtime/node/drivers/qemu/firmware.ts'
import type { BinaryFacts } from '../../runtime/node/drivers/qemu/probe.ts'
import type { Qmp } from '../../runtime/node/drivers/qemu/qmp.ts'
import { ChildProcessRunner } from '../../runtime/node/keeper/process/child-process.ts'
import { machine, realWire, type Wanted, wires } from '../node/drivers/qemu/machine.ts'
import {
  monitor,
  qemuName,
  type RunningQemu,
  startQemu,
  temporaryDirectory,
} from '../node/drivers/qemu/qemu-process.ts'
import { hangMs } from '../support/limits.ts'
import { freePort, freePorts } from '../support/ports.ts'
import { requireProgram } from '../support/require.ts'
import { provided, testWith } from '../support/test-with.ts'

const needsQemu = requireProgram(qemuName)
const qemuTest = testWith(needsQemu, requireProgram('qemu-img'))

let facts: BinaryFacts
let accelerator: Accelerator
beforeAll(async () => {
  if (needsQemu.skip) return
  facts = await resolveEmulator({ platform: 'x86_64' }, false)
  accelerator = acceleratorsOf(facts)[0] ?? 'tcg'
})

/** Guests that run do so without KVM: not every one that opens runs real-mode firmware. */
const runs = { accelerator: 'tcg' } as const

/** Starts what the command line says, and reaches its monitor; what QEMU complains of is the failure. */
async function started(wanted: Wanted, directory?: string): Promise<{ qmp: Qmp; qemu: RunningQemu }> {
  const socket = join(directory ?? (await temporaryDirectory()), 'qmp.sock')
  const own = { facts, accelerator, monitor: socket, wires: wires(wanted.adapters ?? 0, (count) => freePorts(count)) }
  const qemu = startQemu(socket, commandLine(machine({ ...own, ...wanted })))
  const died = qemu.ended.then((code) => {
    throw new Error(`QEMU ended with ${code}: ${qemu.complaints()}`)
  })
  died.catch(() => {})
  return { qmp: await Promise.race([monitor(socket, 15_000), died]), qemu }
}

async function quit({ qmp, qemu }: { qmp: Qmp; qemu: RunningQemu }): Promise<void> {
  await qmp.execute('quit', {}, hangMs)
  expect(await qemu.ended).toBe(0)
  // What the processor of the host lacks is no fault of the command line.
  const complaints = qemu.complaints().split('\n')
  expect(complaints.filter((line) => /error|warning/i.test(line) && !/requested feature/.test(line))).toEqual([])
}

const freeConsole = () => ({ host: '127.0.0.1', port: freePort() })

const numbers = [0, 1, 28, 29, 275]
const kinds = ['pc', 'q35'].flatMap((type) =>
  ['e1000', 'virtio-net-pci'].flatMap((model) => numbers.map((count) => [count, model, type] as const)),
)
qemuTest.for(kinds)('%i adapters of %s on %s are accepted, each with its own link', async ([count, model, type]) => {
  const all = await started({ adapters: count, model, options: `-machine ${type}` })
  const devices = await all.qmp.execute<{ name: string }[]>('qom-list', { path: '/machine/peripheral' }, hangMs)
  expect(devices.filter(({ name }) => name.startsWith('pb-nic')).length).toBe(count)
  if (count > 0) await all.qmp.execute('set_link', { name: netdevId(count - 1), up: false }, hangMs)
  await quit(all)
})

const interfaces = ['ide', 'sata', 'nvme', 'scsi', 'virtio', 'floppy', 'none'] as const
qemuTest.for(interfaces.flatMap((as) => ['pc', 'q35'].map((type) => [as, type] as const)))(
  'disks on %s of %s are accepted',
  async ([as, type]) => {
    const directory = await temporaryDirectory()
    const [base, path] = [join(directory, 'base,1.img'), join(directory, 'hda,_disk.qcow2')]
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', base, as === 'floppy' ? '1440k' : '8M'])
    const disk = await prepareOverlay(findImageTool(facts.path), { path, base })
    const disks = [{ slot: 'hda' as const, ...disk, interface: as }]
    const all = await started({ adapters: 28, disks, options: `-machine ${type}` }, directory)
    const blocks = await all.qmp.execute<{ device: string; inserted?: { file: string } }[]>('query-block', {}, hangMs)
    expect(blocks.find(({ device }) => device === 'pb-hda')?.inserted?.file).toBe(path)
    expect(blocks.map(({ device }) => device)).toContain('pb-cdrom')
    await quit(all)
  },
)

qemuTest('four virtio disks and 28 adapters have room beside each other', async () => {
  const directory = await temporaryDirectory()
  const disks = (['hda', 'hdb', 'hdc', 'hdd'] as const).map((slot) => {
    const path = join(directory, slot)
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', path, '1M'])
    return { slot, path, format: 'qcow2', interface: 'virtio' as const }
  })
  for (const type of ['pc', 'q35']) {
    const options = `-machine ${type} -device virtio-rng-pci -device virtio-balloon-pci`
    await quit(
      await started({
        adapters: 28,
        disks,
        options,
        settings: { console_type: 'spice+agent' },
        console: freeConsole(),
      }),
    )
  }
})

qemuTest('a medium is changed in the drive while the machine runs', async () => {
  const directory = await temporaryDirectory()
  const iso = join(directory, 'cd.iso')
  execFileSync('qemu-img', ['create', '-q', '-f', 'raw', iso, '1M'])
  const all = await started({})
  await all.qmp.execute('blockdev-change-medium', { device: 'pb-cdrom', filename: iso, format: 'raw' }, hangMs)
  const blocks = await all.qmp.execute<{ device: string; inserted?: { file: string } }[]>('query-block', {}, hangMs)
  expect(blocks.find(({ device }) => device === 'pb-cdrom')?.inserted?.file).toBe(iso)
  await quit(all)
})

qemuTest('a name with commas and equals signs arrives as it is', async () => {
  const all = await started({ settings: { name: 'a,b=c, "d" é' } })
  expect(await all.qmp.execute('query-name', {}, hangMs)).toEqual({ name: 'a,b=c, "d" é' })
  await quit(all)
})

qemuTest('a VNC console listens where it should, and no monitor is behind it', async () => {
  const console = freeConsole()
  const all = await started({ settings: { console_type: 'vnc' }, console })
  expect(await all.qmp.execute('query-vnc', {}, hangMs)).toMatchObject({ enabled: true, service: String(console.port) })
  const channels = await all.qmp.execute<{ label: string }[]>('query-chardev', {}, hangMs)
  expect(channels.map(({ label }) => label).filter((label) => /monitor/.test(label))).toEqual([])
  await quit(all)
})

qemuTest.for(['spice', 'spice+agent'] as const)('a %s console is accepted', async (console_type, { skip: leave }) => {
  if (!facts.hasSpice) leave('this QEMU has no SPICE')
  const console = freeConsole()
  const all = await started({ settings: { console_type }, console })
  expect(await all.qmp.execute('query-spice', {}, hangMs)).toMatchObject({ enabled: true, port: console.port })
  await quit(all)
})

qemuTest('a UEFI of the host starts with variables of its own', async ({ skip: leave }) => {
  const [uefi] = await systemUefis('x86_64', 'pc-q35-7.2')
  if (uefi === undefined) return leave('no UEFI is installed')
  const directory = await temporaryDirectory()
  const firmware = await firmwareOf(uefi.code, directory)
  const vars = join(directory, 'uefi_vars.fd')
  expect(firmware).toEqual({ type: 'uefi', code: uefi.code, vars })
  const template = await readFile(uefi.vars)
  expect((await readFile(vars)).equals(template)).toBe(true)
  const all = await started({ firmware, options: '-machine q35', ...runs }, directory)
  await all.qmp.execute('cont', {}, hangMs)
  // It notes its boot entries there.
  await expect.poll(async () => (await readFile(vars)).equals(template), { interval: 200 }).toBe(false)
  await quit(all)
  // What is there stays.
  const written = await readFile(vars)
  await firmwareOf(uefi.code, directory)
  expect((await readFile(vars)).equals(written)).toBe(true)
})

const wholeUefi = '/usr/share/ovmf/OVMF.fd'
testWith(needsQemu, provided(existsSync(wholeUefi), `${wholeUefi} is not there`))(
  'a whole UEFI is used like a BIOS',
  async () => {
    const firmware = await firmwareOf(wholeUefi, '/nowhere')
    expect(firmware).toEqual({ type: 'bios', path: wholeUefi })
    await quit(await started({ firmware }))
  },
)

qemuTest('275 adapters run', async () => {
  const all = await started({ ...runs, adapters: 275, model: 'virtio-net-pci' })
  await all.qmp.execute('cont', {}, hangMs)
  expect(await all.qmp.execute('query-status', {}, hangMs)).toMatchObject({ status: 'running' })
  await quit(all)
})

qemuTest.for(['dgram', 'socket'])(
  'what the guest sends comes out of the wire (%s)',
  async (netdev, { skip: leave }) => {
    if (!facts.netdevs.has(netdev)) leave(`this QEMU has no netdev of the type ${netdev}`)
    const { wire, end } = await realWire()
    const frame = once(end, 'message', { signal: AbortSignal.timeout(hangMs) }) as Promise<[Buffer]>
    const all = await started({
      ...{ ...runs, adapters: 1, wires: new Map([['0/0', wire]]), settings: { boot_priority: 'n' } },
      facts: { ...facts, netdevs: new Set([netdev]) },
    })
    await all.qmp.execute('cont', {}, hangMs)
    const [bytes] = await frame
    expect(bytes.toString('hex', 6, 12)).toBe('0c0000000100')
    await quit(all)
  },
)

qemuTest('the serial console is on standard input and output, as the keeper runs it', async () => {
  const cwd = await temporaryDirectory()
  const args = commandLine(machine({ facts, ...runs, options: '-nographic', isPaused: false, monitor: 'qmp.sock' }))
  let shown = ''
  const runner = await ChildProcessRunner.start(
    { type: 'process', command: facts.path, args, cwd, log: join(cwd, 'qemu.log'), stdio: 'pipe' },
    (bytes) => {
      shown += Buffer.from(bytes).toString('latin1')
    },
  )
  onTestFinished(() => void runner.stop(0))
  await expect.poll(() => shown, { interval: 50 }).toContain('SeaBIOS')
  // For the guest, and neither the end of the emulator nor a way to its monitor.
  runner.input(Buffer.from('\x03\x01x\x01c'))
  const qmp = await monitor(join(cwd, 'qmp.sock'))
  expect(await qmp.execute('query-status', {}, hangMs)).toMatchObject({ status: 'running' })
  expect(await runner.stop(5000)).toMatchObject({ code: 0 })
  expect(shown).not.toContain('(qemu)')
})
