import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { MachineEmulatorNode } from '../../../../src/model/kinds/machine-emulator.ts'
import { escaped } from '../../../../src/model/kinds/machine-options/option-list.ts'
import type { DrivePart } from './drives.ts'
import type { ParsedOptions } from './options.ts'
import type { BinaryFacts } from './probe.ts'

/** VNC display 0 is port 5900. */
const firstVncPort = 5900

type Endpoint = { readonly host: string; readonly port: number }

/** The arguments of a console: a serial port on stdin and stdout, a VNC or SPICE server, or none. */
export function consoleArguments(
  type: MachineEmulatorNode['console_type'],
  endpoint: Endpoint | null,
  facts: BinaryFacts,
  options: ParsedOptions,
): DrivePart {
  const noDisplay = options.hasDisplay ? [] : ['-display', 'none']
  switch (type) {
    case 'none':
      return { args: noDisplay, pciDevices: 0 }
    case 'telnet':
      // signal=off passes Ctrl-C to the guest.
      return {
        args: ['-chardev', 'stdio,id=pb-serial,signal=off', '-serial', 'chardev:pb-serial', ...noDisplay],
        pciDevices: 0,
      }
    case 'vnc':
      return { args: vnc(required(endpoint), facts), pciDevices: 0 }
    case 'spice':
      return { args: spice(required(endpoint), facts, options), pciDevices: 0 }
    case 'spice+agent':
      return { args: [...spice(required(endpoint), facts, options), ...agent], pciDevices: 1 }
  }
}

function vnc({ host, port }: Endpoint, facts: BinaryFacts): string[] {
  if (!facts.hasVnc) throw conflict('console_type: this emulator is built without VNC')
  if (port < firstVncPort) throw conflict(`console: a VNC console has a port from ${firstVncPort}, got ${port}`)
  return ['-vnc', `${host.includes(':') ? `[${host}]` : host}:${port - firstVncPort}`]
}

function spice({ host, port }: Endpoint, facts: BinaryFacts, options: ParsedOptions): string[] {
  if (!facts.hasSpice)
    throw conflict('console_type: this emulator has no SPICE; install it (apt-get install qemu-system-modules-spice)')
  const hasQxl = facts.devices.has('qxl-vga') && !options.hasVga
  return [...['-spice', `addr=${escaped(host)},port=${port},disable-ticketing=on`], ...(hasQxl ? ['-vga', 'qxl'] : [])]
}

/** The channel of the SPICE agent, for clipboard and resizing. */
const agent: readonly string[] = [
  ...['-device', 'virtio-serial-pci,id=pb-agent-bus'],
  ...['-chardev', 'spicevmc,id=pb-agent,name=vdagent'],
  ...['-device', 'virtserialport,bus=pb-agent-bus.0,chardev=pb-agent,name=com.redhat.spice.0'],
]

function required(endpoint: Endpoint | null): Endpoint {
  if (endpoint === null) throw conflict('console: the console of this type needs a port')
  return endpoint
}
