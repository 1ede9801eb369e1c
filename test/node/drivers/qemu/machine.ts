import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { adaptersOf } from '../../../../runtime/node/drivers/qemu/adapters.ts'
import type { MachineSpec } from '../../../../runtime/node/drivers/qemu/command-line.ts'
import { parseOptions } from '../../../../runtime/node/drivers/qemu/options.ts'
import { type BinaryFacts, devicesIn } from '../../../../runtime/node/drivers/qemu/probe.ts'
import type { PortWire } from '../../../../runtime/node/engine/nodes/kind.ts'

/** What QEMU 7.2 for PCs has, as far as command lines depend on it. */
export const pcFacts: BinaryFacts = {
  path: '/usr/bin/qemu-system-x86_64',
  version: { major: 7, minor: 2, micro: 0 },
  platform: 'x86_64',
  machines: [{ name: 'pc-i440fx-7.2', alias: 'pc', maxCpus: 255, isDefault: true }],
  devices: devicesIn(
    `Storage devices:\n${['lsi53c895a', 'ide-hd', 'nvme'].map((name) => `name "${name}", bus PCI\n`).join('')}
Controller devices:\nname "i82801b11-bridge", bus PCI\nname "pci-bridge", bus PCI
Display devices:\nname "qxl-vga", bus PCI
Network devices:\nname "e1000", bus PCI\nname "virtio-net-pci", bus PCI\nname "ne2k_isa", bus ISA\n`,
  ),
  netdevs: new Set(['socket', 'stream', 'dgram']),
  builtWith: { tcg: true, kvm: true },
  hasVnc: true,
  hasSpice: true,
}

export interface Wanted extends Partial<Omit<MachineSpec, 'settings' | 'adapters' | 'options'>> {
  readonly settings?: Partial<MachineSpec['settings']>
  readonly adapters?: number
  readonly model?: string
  readonly options?: string
}

/** A machine with everything at its default but what is wanted. */
export function machine({ settings, adapters = 0, model = 'e1000', options = '', ...rest }: Wanted = {}): MachineSpec {
  const all: MachineSpec['settings'] = {
    ...{ name: 'R1', node_id: '10000000-0000-4000-8000-000000000001', ram: 256, cpus: 1 },
    ...({ boot_priority: 'c', kernel_command_line: '', console_type: 'telnet' } as const),
    ...settings,
  }
  return {
    settings: all,
    facts: pcFacts,
    accelerator: 'kvm',
    options: parseOptions(options, {
      isLocal: true,
      consoleType: all.console_type,
      placeholders: {
        ...{ 'vm-name': all.name, 'vm-id': all.node_id, 'project-id': '', 'project-path': '/p' },
        ...{ 'console-port': 0, 'guest-cid': 3 },
      },
    }),
    disks: [],
    cdrom: null,
    adapters: adaptersOf({
      ...{ adapters, adapter_type: model, mac_address: '0c:00:00:00:01:00', custom_adapters: [] },
    }),
    wires: wires(adapters),
    console: null,
    monitor: 'qmp.sock',
    isPaused: true,
    ...rest,
  }
}

/** Wires with no guest at their other ends; `portsFor` gives the first of so many ports. */
export function wires(count: number, portsFor = (_: number) => 10_000): ReadonlyMap<string, PortWire> {
  const first = count === 0 ? 0 : portsFor(2 * count)
  const pairs = Array.from({ length: count }, (_, n) => ({ guest_port: first + 2 * n, switch_port: first + 2 * n + 1 }))
  return new Map(pairs.map((wire, n) => [`${n}/0`, wire]))
}

/** A wire whose other end is a socket of the test. */
export async function realWire() {
  const [guest, end] = [createSocket('udp4'), createSocket('udp4')]
  for (const socket of [guest, end]) {
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
  }
  const wire: PortWire = { guest_port: guest.address().port, switch_port: end.address().port }
  await new Promise<void>((resolve) => guest.close(resolve))
  onTestFinished(() => void end.close())
  return { wire, end }
}
