/** A machine as lists name it. */
export interface ListedMachine {
  readonly uuid: string
  readonly name: string
}

const uuid = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
/** Names are written as they are, with their quotes and braces: only the end tells where one ends. */
const machineLine = new RegExp(`^"(.*)" \\{(${uuid})\\}$`, 'i')

/** `list vms`, `list runningvms`; without what cannot be read, be it a machine or a line. */
export function parseMachines(text: string): ListedMachine[] {
  const machines: ListedMachine[] = []
  for (const line of text.split(/\r?\n/)) {
    const [, name, id] = machineLine.exec(line) ?? []
    if (name !== undefined && id !== undefined && name !== '<inaccessible>')
      machines.push({ uuid: id.toLowerCase(), name })
  }
  return machines
}

/** `getextradata {machine} enumerate`; its words for key and value may be of any language, see `parseInstallation`. */
export function parseExtraData(text: string): Map<string, string> {
  const pairs = [...text.matchAll(/^[^:\n]+: (.+?), [^:,\n]+: (.*)$/gm)]
  return new Map(pairs.map(([, key = '', value = '']) => [key, value.trim()]))
}

export interface Disk {
  readonly file: string
  readonly isAccessible: boolean
}

/** `list hdds`: those below before those above them. */
export function parseDisks(text: string): Disk[] {
  const disks: Disk[] = []
  for (const block of text.split(/\r?\n\r?\n/)) {
    // Nothing else is a path.
    const file = /^[^:\n]+: +(\/.*)$/m.exec(block)?.[1]
    if (file !== undefined) disks.push({ file, isAccessible: !/^State: +inaccessible/m.test(block) })
  }
  return disks
}

/** What the VirtualBox of this host is. */
export interface Installation {
  /** Of its programming interface: [7, 0]; undefined when it does not say. */
  readonly api: readonly [number, number] | undefined
  readonly ich9Adapters: number
  /** The extension pack that serves screens; empty: none. */
  readonly screenPack: string
}

/** `list systemproperties`. Its keys may be translated whatever the environment says, so a missing one has its usual value. */
export function parseInstallation(text: string): Installation {
  const [, major, minor] = /^[^\n]*: +(\d+)_(\d+)\s*$/m.exec(text) ?? []
  const ich9 = /^Maximum ICH9 Network Adapter count: +(\d+)/m.exec(text)?.[1]
  return {
    api: major === undefined ? undefined : [Number(major), Number(minor)],
    ich9Adapters: ich9 === undefined ? 36 : Number(ich9),
    screenPack: /^Remote desktop ExtPack: +(\S.*?)\s*$/m.exec(text)?.[1] ?? '',
  }
}

/** What only the description that is meant for people says of an adapter. */
export interface AdapterNote {
  readonly isTraced: boolean
  /** Of its driver, when it has one. */
  readonly properties: Readonly<Record<string, string>>
}

/** `showvminfo {machine}`, by the number of the adapter, from 1; empty when it is not in English. */
export function parseAdapterNotes(text: string): Map<number, AdapterNote> {
  const notes = new Map<number, AdapterNote>()
  for (const [, number, rest = ''] of text.matchAll(/^NIC (\d+): +(MAC: .*)$/gm)) {
    const inner = /, Attachment: Generic '.*?' \{ (.*?) \}, Cable connected: /.exec(rest)?.[1] ?? ''
    const properties = [...inner.matchAll(/([\w.-]+)='([^']*)'/g)].map(([, key = '', value = '']) => [key, value])
    notes.set(Number(number), {
      isTraced: /^.*, Trace: on \(/.test(rest),
      properties: Object.fromEntries(properties),
    })
  }
  return notes
}
