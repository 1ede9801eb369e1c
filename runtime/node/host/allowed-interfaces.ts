import { forbidden } from '../../../src/errors.ts'
import type { NetworkInterface } from '../../../src/model/host.ts'
import { listInterfaces } from './interfaces.ts'

/** Whether NIOs may use a device: `*` stands for any text; without patterns all may be used. */
export function isAllowed(device: string, patterns: readonly string[]): boolean {
  return (
    patterns.length === 0 ||
    patterns.some((pattern) => {
      const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      return new RegExp(`^${parts.join('.*')}$`).test(device)
    })
  )
}

/** 403 that names the setting. */
export function requireAllowed(field: string, device: string, patterns: readonly string[]): void {
  if (isAllowed(device, patterns)) return
  throw forbidden(`${field}: ${device} may not be used here, allowed_interfaces has ${patterns.join(', ')}`)
}

/** The interfaces of this host that NIOs may use. */
export const allowedInterfaces = (patterns: readonly string[]): NetworkInterface[] =>
  listInterfaces().filter(({ name }) => isAllowed(name, patterns))
