import { unsafeOptions } from './machine-options/options-in.ts'

/**
 * A setting of a node by which it runs programs of the host, or opens files of the host outside the images. A client in local
 * mode may use such settings; a file that has them must be trusted first.
 */
export interface HostAccess {
  /** The name of the setting, such as `options`. */
  readonly setting: string
  /** What it would run or open. */
  readonly value: string
}

type Settings = Readonly<Record<string, unknown>>

/** The directories in which distributions have emulators. */
const emulator = /^(\/usr(\/local)?|\/opt\/homebrew)?\/bin\/qemu-system-\w+$/

/** Options beyond those that clients outside local mode may use, an emulator from elsewhere, and a path that QEMU splits. */
export function machineHostAccess({ options, qemu_path, initrd }: Settings): HostAccess[] {
  const all: HostAccess[] = []
  if (typeof options === 'string') for (const value of unsafeOptions(options)) all.push({ setting: 'options', value })
  if (typeof qemu_path === 'string' && qemu_path.includes('/') && !emulator.test(qemu_path))
    all.push({ setting: 'qemu_path', value: qemu_path })
  // For some kernels a comma begins the path of another file.
  if (typeof initrd === 'string' && initrd.includes(',')) all.push({ setting: 'initrd', value: initrd })
  return all
}

/** Lines by which VPCS runs a program (`!`), reads a script, or connects to a port of the host. Commands may be abbreviated. */
export function pcHostAccess({ startup_script }: Settings): HostAccess[] {
  return typeof startup_script === 'string' ? unsafePcLines(startup_script, 'startup_script') : []
}

const unsafePcCommands = ['load', 'rlogin'] as const

/** The same for a text that is typed on the console of a pc. */
export const unsafePcLines = (text: string, setting: string): HostAccess[] =>
  text.split(/[\r\n]+/).flatMap((line) => {
    const [word = ''] = line.trim().toLowerCase().split(/\s+/)
    // `%h` becomes the name of the node, which may begin with anything.
    const isUnsafe = /^(!|%h)/.test(word) || unsafePcCommands.some((command) => word !== '' && command.startsWith(word))
    return isUnsafe ? [{ setting, value: line.trim().slice(0, 500) }] : []
  })
