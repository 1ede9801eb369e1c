/** A VM in a list. */
export type ListedMachine = { readonly uuid: string; readonly name: string }

const uuid = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
/** Names are not escaped and may contain quotes and braces, so the pattern is anchored at the end. */
const machineLine = new RegExp(`^"(.*)" \\{(${uuid})\\}$`, 'i')

/** Parses `list vms` and `list runningvms`; unreadable lines and inaccessible VMs are dropped. */
export function parseMachines(text: string): ListedMachine[] {
  const machines: ListedMachine[] = []
  for (const line of text.split(/\r?\n/)) {
    const [, name, id] = machineLine.exec(line) ?? []
    if (name !== undefined && id !== undefined && name !== '<inaccessible>')
      machines.push({ uuid: id.toLowerCase(), name })
  }
  return machines
}

/** Parses `getextradata {VM} enumerate`; the words for key and value may be translated. */
export function parseExtraData(text: string): Map<string, string> {
  const pairs = [...text.matchAll(/^[^:\n]+: (.+?), [^:,\n]+: (.*)$/gm)]
  return new Map(pairs.map(([, key = '', value = '']) => [key, value.trim()]))
}

export type Disk = { readonly file: string; readonly isAccessible: boolean }

/** Parses `list hdds`, in which bases come before their overlays. */
export function parseDisks(text: string): Disk[] {
  const disks: Disk[] = []
  for (const block of text.split(/\r?\n\r?\n/)) {
    // Only the location begins with a slash.
    const file = /^[^:\n]+: +(\/.*)$/m.exec(block)?.[1]
    if (file !== undefined) disks.push({ file, isAccessible: !/^State: +inaccessible/m.test(block) })
  }
  return disks
}

/** Facts of the installed VirtualBox. */
export interface Installation {
  /** API version, such as [7, 0]. */
  readonly api: readonly [number, number] | undefined
  readonly ich9Adapters: number
  /** The extension pack for remote screens; empty: none. */
  readonly screenPack: string
}

/** Parses `list systemproperties`. Keys may be translated in spite of the locale, so missing ones have a default. */
export function parseInstallation(text: string): Installation {
  const [, major, minor] = /^[^\n]*: +(\d+)_(\d+)\s*$/m.exec(text) ?? []
  const ich9 = /^Maximum ICH9 Network Adapter count: +(\d+)/m.exec(text)?.[1]
  return {
    api: major === undefined ? undefined : [Number(major), Number(minor)],
    ich9Adapters: ich9 === undefined ? 36 : Number(ich9),
    screenPack: /^Remote desktop ExtPack: +(\S.*?)\s*$/m.exec(text)?.[1] ?? '',
  }
}

/** Facts of an adapter that the machine-readable description lacks. */
export interface AdapterNote {
  readonly isTraced: boolean
  /** Properties of the generic driver. */
  readonly properties: Readonly<Record<string, string>>
}

/** Parses `showvminfo {VM}`, by adapter number from 1; empty when the text is not in English. */
export function parseAdapterNotes(text: string): Map<number, AdapterNote> {
  const notes = new Map<number, AdapterNote>()
  for (const [, number, rest = ''] of text.matchAll(/^NIC (\d+): +(MAC: .*)$/gm)) {
    const inner = /, Attachment: Generic '.*?' \{ (.*?) \}, Cable connected: /.exec(rest)?.[1] ?? ''
    const properties = [...inner.matchAll(/([\w.-]+)='([^']*)'/g)].map(([, key = '', value = '']) => [key, value])
    notes.set(Number(number), { isTraced: /^.*, Trace: on \(/.test(rest), properties: Object.fromEntries(properties) })
  }
  return notes
}
