import { conflict } from '../../../../../src/errors/api-error.ts'
import { child, children, type Element, textOf } from './xml.ts'

/** Kinds of VM that QEMU runs. */
const qemuTypes: ReadonlySet<string> = new Set(['qemu', 'kvm', 'hvf'])

const unitBytes: Readonly<Record<string, number>> = {
  b: 1,
  bytes: 1,
  kb: 1e3,
  k: 2 ** 10,
  kib: 2 ** 10,
  mb: 1e6,
  m: 2 ** 20,
  mib: 2 ** 20,
  gb: 1e9,
  g: 2 ** 30,
  gib: 2 ** 30,
  tb: 1e12,
  t: 2 ** 40,
  tib: 2 ** 40,
}

export const domainNameOf = (domain: Element): string => textOf(child(domain, 'name'))

/** MB of the memory that it is defined with. */
export function ramOf(domain: Element): number {
  const memory = child(domain, 'memory')
  const unit = memory?.getAttribute('unit')?.toLowerCase() ?? 'kib'
  return Math.floor((Number(textOf(memory)) * (unitBytes[unit] ?? 0)) / 2 ** 20)
}

/** 409 for a VM that is no machine of QEMU. */
export function requireMachine(domain: Element): void {
  const type = domain.getAttribute('type') ?? ''
  if (!qemuTypes.has(type)) throw conflict(`"${domainNameOf(domain)}" is of ${type}, not of QEMU: it cannot be a node`)
}

export function devicesOf(domain: Element): Element {
  const devices = child(domain, 'devices')
  if (devices === undefined) throw conflict(`"${domainNameOf(domain)}" has no devices: it cannot be a node`)
  return devices
}

export const interfacesOf = (domain: Element): Element[] => children(devicesOf(domain), 'interface')

/** Whether the VM uses the adapter for something else; one without a backend (`null`) is not attached to anything. */
export const isUsed = (adapter: Element): boolean => adapter.getAttribute('type') !== 'null'
