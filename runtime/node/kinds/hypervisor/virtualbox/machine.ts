import type { VmState } from '../driver.ts'

/** An adapter of a machine, as it is described; what is disabled (`none`) says nothing else. */
export interface Adapter {
  /** From 1. */
  readonly number: number
  /** Lower case: none, null, nat, bridged, intnet, hostonly, generic, natnetwork, or one we do not know. */
  readonly attachment: string
  /** Twelve hexadecimal digits. */
  readonly mac: string | undefined
  /** What it is attached to: the host's device, the network, or the driver. */
  readonly to: string | undefined
  readonly type: string | undefined
  readonly hasCable: boolean | undefined
}

/** The first serial port; what is off says nothing else. */
export interface SerialPort {
  /** `off`, or its address and interrupt: `0x03f8,4`. */
  readonly at: string
  /** `disconnected`, `server,{path}`, ... */
  readonly mode: string | undefined
}

/** The server of its screen; what is off says nothing else. */
export interface ScreenServer {
  readonly isOn: boolean
  readonly ports: string | undefined
  readonly address: string | undefined
}

export interface AttachedDisk {
  readonly controller: string
  readonly port: number
  readonly device: number
  readonly file: string
}

export interface Snapshot {
  readonly name: string
  readonly uuid: string
}

/** The name of the value that says what an adapter is attached to, and the option of modifyvm that sets it. */
export const attachments: Readonly<Record<string, { readonly key: string; readonly option: string }>> = {
  bridged: { key: 'bridgeadapter', option: '--bridgeadapter' },
  intnet: { key: 'intnet', option: '--intnet' },
  hostonly: { key: 'hostonlyadapter', option: '--hostonlyadapter' },
  natnetwork: { key: 'nat-network', option: '--nat-network' },
  generic: { key: 'generic', option: '--nicgenericdrv' },
}

/** A machine, as `showvminfo --machinereadable` describes it. */
export class VirtualBoxVm {
  readonly #values: Map<string, string>

  constructor(text: string) {
    this.#values = parseValues(text)
  }

  get uuid(): string {
    return (this.#values.get('UUID') ?? '').toLowerCase()
  }
  get name(): string {
    return this.#escaped('name')
  }
  get isAccessible(): boolean {
    return this.#values.has('VMState')
  }
  get memory(): number {
    return Number(this.#values.get('memory') ?? 0)
  }
  get processors(): number {
    return Number(this.#values.get('cpus') ?? 1)
  }
  get chipset(): string {
    return (this.#values.get('chipset') ?? '').toLowerCase()
  }
  /** Its settings; everything of a clone is beside that file. */
  get file(): string {
    return this.#escaped('CfgFile')
  }
  get state(): VmState {
    return states[this.#values.get('VMState') ?? ''] ?? 'stopped'
  }
  /** Whether VirtualBox has stopped working in it; what runs in it does not go on. */
  get isStuck(): boolean {
    return this.#values.get('VMState') === 'gurumeditation'
  }
  /** Whether a program has it, so that it cannot be changed; that one may end a moment after the machine. */
  get isInUse(): boolean {
    return this.#values.has('SessionName') || this.#values.has('SessionType')
  }

  /** Every adapter that it can have, in order. */
  get adapters(): Adapter[] {
    const found: Adapter[] = []
    for (let number = 1; this.#values.has(`nic${number}`); number++) found.push(this.adapter(number))
    return found
  }

  adapter(number: number): Adapter {
    const attachment = (this.#values.get(`nic${number}`) ?? 'none').toLowerCase()
    const cable = this.#values.get(`cableconnected${number}`)
    return {
      number,
      attachment,
      mac: this.#values.get(`macaddress${number}`),
      to: this.#values.get(`${attachments[attachment]?.key}${number}`),
      type: this.#values.get(`nictype${number}`),
      hasCable: cable === undefined ? undefined : cable === 'on',
    }
  }

  /** Rules of its NAT adapters by which ports of the host lead to it: name, protocol, host, port, guest, port. */
  get forwardings(): string[] {
    return [...this.#values].flatMap(([key, rule]) => (/^Forwarding\(\d+\)$/.test(key) ? [rule] : []))
  }

  get serialPort(): SerialPort {
    return { at: this.#values.get('uart1') ?? 'off', mode: this.#values.get('uartmode1') }
  }

  get screen(): ScreenServer {
    return {
      isOn: this.#values.get('vrde') === 'on',
      ports: this.#values.get('vrdeports'),
      address: this.#values.get('vrdeaddress'),
    }
  }

  /** What is in its drives. */
  get disks(): AttachedDisk[] {
    const disks: AttachedDisk[] = []
    for (const [key, value] of this.#values) {
      const [, controller, port, device] = /^(.+)-(\d+)-(\d+)$/.exec(unescaped(key)) ?? []
      if (controller === undefined || !value.startsWith('/')) continue
      disks.push({ controller, port: Number(port), device: Number(device), file: unescaped(value) })
    }
    return disks
  }

  get snapshots(): Snapshot[] {
    const found: Snapshot[] = []
    for (const [key, name] of this.#values) {
      const place = /^SnapshotName((?:-\d+)*)$/.exec(key)?.[1]
      const uuid = place === undefined ? undefined : this.#values.get(`SnapshotUUID${place}`)
      if (uuid !== undefined) found.push({ name, uuid })
    }
    return found
  }

  #escaped(key: string): string {
    return unescaped(this.#values.get(key) ?? '')
  }
}

/** Not listed: stopped, or what VirtualBox does to a machine that does not run, which it says itself when it is in the way. */
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

/** The first of a key counts: the description of a machine, in which its owner may write anything, comes late. */
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
