import { conflict } from '../../../../../src/lib/errors/api-error.ts'
import { child, children, type Element, textOf } from './xml.ts'

/** Domain types that QEMU runs. */
const qemuTypes: ReadonlySet<string> = new Set(['qemu', 'kvm', 'hvf'])

/** Units of libvirt: b, bytes, kB, k, KiB, ... (formatdomain.html#memory-allocation). */
function bytesOf(unit: string): number {
  const [, prefix = '', isDecimal] = /^([kmgt]?)(b?)$/.exec(unit.replace(/^bytes$/, '').replace(/ib$/, '')) ?? []
  return (isDecimal === 'b' ? 1000 : 1024) ** ' kmgt'.indexOf(prefix || ' ')
}

export const domainNameOf = (domain: Element): string => textOf(child(domain, 'name'))

/** The memory in the definition, MB. */
export function ramOf(domain: Element): number {
  const memory = child(domain, 'memory')
  const unit = memory?.getAttribute('unit')?.toLowerCase() ?? 'kib'
  return Math.floor((Number(textOf(memory)) * bytesOf(unit)) / 2 ** 20)
}

/** 409 for a VM that QEMU does not run. */
export function requireMachine(domain: Element): void {
  const type = domain.getAttribute('type') ?? ''
  if (!qemuTypes.has(type))
    throw conflict(`"${domainNameOf(domain)}" is a ${type} VM, not a QEMU VM: it cannot be a node`)
}

export function devicesOf(domain: Element): Element {
  const devices = child(domain, 'devices')
  if (devices === undefined) throw conflict(`"${domainNameOf(domain)}" has no devices: it cannot be a node`)
  return devices
}

export const interfacesOf = (domain: Element): Element[] => children(devicesOf(domain), 'interface')

/** Whether the adapter has a backend. Type `null` has none. */
export const isUsed = (adapter: Element): boolean => adapter.getAttribute('type') !== 'null'
