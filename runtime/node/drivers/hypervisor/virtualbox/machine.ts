import type { VmState } from '../driver.ts'

/** An adapter; a disabled one (`none`) has no other facts. */
export interface VirtualBoxAdapter {
  /** From 1. */
  readonly number: number
  /** none, null, nat, bridged, intnet, hostonly, generic, natnetwork, or another word. */
  readonly attachment: string
  /** Twelve hexadecimal digits. */
  readonly mac: string | undefined
  /** The host device, the network, or the driver. */
  readonly to: string | undefined
  readonly type: string | undefined
  readonly hasCable: boolean | undefined
}

export interface AttachedDisk {
  readonly controller: string
  readonly port: number
  readonly device: number
  readonly file: string
}

export type Snapshot = { readonly name: string; readonly uuid: string }

/** The key in the description with the target of an attachment, and the option of modifyvm that sets it. */
export const attachments: Readonly<Record<string, { readonly key: string; readonly option: string }>> = {
  bridged: { key: 'bridgeadapter', option: '--bridgeadapter' },
  intnet: { key: 'intnet', option: '--intnet' },
  hostonly: { key: 'hostonlyadapter', option: '--hostonlyadapter' },
  natnetwork: { key: 'nat-network', option: '--nat-network' },
  generic: { key: 'generic', option: '--nicgenericdrv' },
}

/** A VM as `showvminfo --machinereadable` describes it. */
export type VirtualBoxVm = ReturnType<typeof parseVm>
export function parseVm(text: string) {
  const values = parseValues(text)
  const value = (key: string) => values.get(key)
  const lowerCase = (key: string) => (value(key) ?? '').toLowerCase()
  const adapter = (number: number): VirtualBoxAdapter => {
    const attachment = lowerCase(`nic${number}`) || 'none'
    const cable = value(`cableconnected${number}`)
    return {
      number,
      attachment,
      mac: value(`macaddress${number}`),
      to: value(`${attachments[attachment]?.key}${number}`),
      type: value(`nictype${number}`),
      hasCable: cable === undefined ? undefined : cable === 'on',
    }
  }
  const adapters: VirtualBoxAdapter[] = []
  while (values.has(`nic${adapters.length + 1}`)) adapters.push(adapter(adapters.length + 1))
  return {
    uuid: lowerCase('UUID'),
    name: unescaped(value('name') ?? ''),
    isAccessible: values.has('VMState'),
    memory: Number(value('memory') ?? 0),
    processors: Number(value('cpus') ?? 1),
    chipset: lowerCase('chipset'),
    /** The settings file; all files of a clone are beside it. */
    file: unescaped(value('CfgFile') ?? ''),
    state: states[value('VMState') ?? ''] ?? 'stopped',
    /** Whether the guest failed in VirtualBox, and cannot continue. */
    isStuck: value('VMState') === 'gurumeditation',
    /** Whether a session locks the VM against changes; it may end shortly after the VM. */
    isInUse: values.has('SessionName') || values.has('SessionType'),
    /** All adapters, in order. */
    adapters,
    adapter,
    /** NAT rules: name, protocol, host address, host port, guest address, guest port. */
    forwardings: [...values].flatMap(([key, rule]) => (/^Forwarding\(\d+\)$/.test(key) ? [rule] : [])),
    /** The first serial port: `off`, or its address and interrupt (`0x03f8,4`); and `server,{path}`, `disconnected`, ... */
    serialPort: { at: value('uart1') ?? 'off', mode: value('uartmode1') },
    /** The server of the screen; the other members are undefined when it is off. */
    screen: { isOn: value('vrde') === 'on', ports: value('vrdeports'), address: value('vrdeaddress') },
    disks: [...values].flatMap(([key, file]): AttachedDisk[] => {
      const [, controller, port, device] = /^(.+)-(\d+)-(\d+)$/.exec(unescaped(key)) ?? []
      if (controller === undefined || !file.startsWith('/')) return []
      return [{ controller, port: Number(port), device: Number(device), file: unescaped(file) }]
    }),
    snapshots: [...values].flatMap(([key, name]): Snapshot[] => {
      const suffix = /^SnapshotName((?:-\d+)*)$/.exec(key)?.[1]
      const uuid = suffix === undefined ? undefined : value(`SnapshotUUID${suffix}`)
      return uuid === undefined ? [] : [{ name, uuid }]
    }),
  }
}

/** All other states count as stopped. */
const states: Readonly<Record<string, VmState>> = {
  running: 'started',
  gurumeditation: 'started',
  starting: 'started',
  stopping: 'started',
  saving: 'started',
  restoring: 'started',
  livesnapshotting: 'started',
  onlinesnapshotting: 'started',
  deletingsnapshotlive: 'started',
  teleporting: 'started',
  teleportingin: 'started',
  paused: 'suspended',
  teleportingpausedvm: 'suspended',
  deletingsnapshotlivepaused: 'suspended',
  saved: 'saved',
  'aborted-saved': 'saved',
}

/** The first value of a key counts: the description of the VM, a free text of its owner, comes late. */
function parseValues(text: string): Map<string, string> {
  const values = new Map<string, string>()
  for (const line of text.split(/\r?\n/)) {
    const [, quotedKey, plainKey, quoted, plain] = /^(?:"((?:[^"\\]|\\.)*)"|([^="]+))=(?:"(.*)"|(.*))$/.exec(line) ?? []
    const key = quotedKey ?? plainKey
    if (key !== undefined && !values.has(key)) values.set(key, quoted ?? plain ?? '')
  }
  return values
}

const unescaped = (text: string) => text.replace(/\\(["\\])/g, '$1')
