import { isLocked, Misuse, machineOf, maxNics, mediumOf } from './machine.ts'
import type { MachineState, Nic, State } from './state.ts'

export function showVmInfo(state: State, args: readonly string[]): string {
  const [wanted, ...options] = args
  if (wanted === undefined) throw new Misuse('VM name or UUID required')
  for (const option of options) if (option !== '--machinereadable') throw new Misuse(`Unknown option: ${option}`)
  const machine = machineOf(state, wanted)
  return options.length > 0 ? machineReadable(state, machine) : forPeople(state, machine)
}

const escaped = (text: string) => text.replace(/["\\]/g, '\\$&')

function machineReadable(state: State, machine: MachineState): string {
  const { uuid, name, file, memory, chipset, uart, vrde, description } = machine
  if (!machine.accessible) return `name="<inaccessible>"\nUUID="${uuid}"\n`
  const lines = [
    `name="${escaped(name)}"`,
    'Encryption:     disabled',
    'groups="/"',
    'ostype="Other Linux (64-bit)"',
    `UUID="${uuid}"`,
    `CfgFile="${escaped(file)}"`,
    `hardwareuuid="${uuid}"`,
    `memory=${memory}`,
    `cpus=${machine.processors}`,
    `chipset="${chipset}"`,
    `VMState="${machine.state}"`,
    'VMStateChangeTime="2026-11-21T12:00:00.000000000"',
    ...machine.controllers.map((controller, index) => `storagecontrollername${index}="${escaped(controller)}"`),
    ...machine.controllers.flatMap((controller) => drives(state, machine, controller)),
    ...machine.nics.slice(0, maxNics(state, machine)).flatMap((nic, index) => nicLines(nic, index + 1)),
    ...machine.nics
      .flatMap(({ forwardings }) => Object.entries(forwardings))
      .map(([rule, where], index) => `Forwarding(${index})="${rule},${where}"`),
    'hidpointing="ps2mouse"',
    ...(uart.on
      ? [`uart1="${uart.base},${uart.irq}"`, `uartmode1="${uart.mode}"`, 'uarttype1="16550A"']
      : ['uart1="off"']),
    'uart2="off"',
    ...(isLocked(machine) ? ['SessionName="headless"'] : []),
    ...(vrde.on ? vrdeLines(vrde) : ['vrde="off"']),
    ...(description === '' ? [] : [`description:\n${description}`]),
    ...machine.snapshots.flatMap((snapshot, depth) => {
      const place = '-1'.repeat(depth)
      return [`SnapshotName${place}="${snapshot.name}"`, `SnapshotUUID${place}="${snapshot.uuid}"`]
    }),
  ]
  return `${lines.join('\n')}\n`
}

function drives(state: State, { slots }: MachineState, controller: string): string[] {
  const lines: string[] = []
  for (const port of [0, 1]) {
    const slot = slots.find((each) => each.controller === controller && each.port === port)
    const medium = slot === undefined ? undefined : mediumOf(state, slot.medium)
    const key = `${escaped(controller)}`
    lines.push(`"${key}-${port}-0"="${slot === undefined ? 'none' : escaped(medium?.file ?? slot.medium)}"`)
    if (medium !== undefined) lines.push(`"${key}-ImageUUID-${port}-0"="${medium.uuid}"`)
  }
  return lines
}

const targets: Readonly<Record<string, readonly [string, keyof Nic]>> = {
  bridged: ['bridgeadapter', 'bridge'],
  intnet: ['intnet', 'intnet'],
  hostonly: ['hostonlyadapter', 'hostonly'],
  natnetwork: ['nat-network', 'natnetwork'],
  generic: ['generic', 'driver'],
}

function nicLines(nic: Nic, number: number): string[] {
  if (!nic.enabled) return [`nic${number}="none"`]
  const target = targets[nic.attachment]
  return [
    ...(nic.attachment === 'nat' ? [`natnet${number}="nat"`] : []),
    ...(target === undefined ? [] : [`${target[0]}${number}="${nic[target[1]]}"`]),
    `macaddress${number}="${nic.mac}"`,
    `cableconnected${number}="${nic.cable ? 'on' : 'off'}"`,
    `nic${number}="${nic.attachment === 'generic' ? 'Generic' : nic.attachment}"`,
    `nictype${number}="${nic.type}"`,
    `nicspeed${number}="0"`,
    ...(nic.attachment === 'nat' ? ['mtu="0"', 'sockSnd="64"', 'sockRcv="64"'] : []),
  ]
}

const vrdeLines = ({ ports, address }: MachineState['vrde']) => [
  'vrde="on"',
  'vrdeport=-1',
  `vrdeports="${ports}"`,
  `vrdeaddress="${address}"`,
  'vrdeauthtype="null"',
]

function forPeople(state: State, machine: MachineState): string {
  const { name, uuid, nics } = machine
  const lines = [
    `Name:                        ${name}`,
    'Groups:                      /',
    `UUID:                        ${uuid}`,
    ...nics.slice(0, maxNics(state, machine)).map((nic, index) => {
      const head = `NIC ${index + 1}:`.padEnd(28)
      if (!nic.enabled) return `${head} disabled`
      return (
        `${head} MAC: ${nic.mac}, Attachment: ${attachmentOf(nic)}, Cable connected: ${nic.cable ? 'on' : 'off'}, ` +
        `Trace: ${nic.trace ? 'on' : 'off'} (file: none), Type: ${nic.type}, Reported speed: 0 Mbps, Boot priority: 0, ` +
        'Promisc Policy: deny, Bandwidth group: none'
      )
    }),
  ]
  return `${lines.join('\n')}\n`
}

function attachmentOf(nic: Nic): string {
  if (nic.attachment === 'generic') {
    const properties = Object.entries(nic.properties).map(([key, value]) => `${key}='${value}'`)
    return `Generic '${nic.driver}' { ${properties.join(', ')} }`
  }
  if (nic.attachment === 'bridged') return `Bridged Interface '${nic.bridge}'`
  return nic.attachment === 'null' ? 'none' : nic.attachment
}
