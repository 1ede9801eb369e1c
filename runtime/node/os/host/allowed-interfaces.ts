import { forbidden } from '../../../../src/lib/errors/api-error.ts'
import type { NetworkInterface } from '../../../../src/model/host.ts'
import { listInterfaces } from '../system/interfaces.ts'

/** The network devices that NIOs may use. */
export interface InterfaceRules {
  /** The setting allowed_interfaces: `*` stands for any text. */
  readonly patterns: readonly string[]
  /** Without patterns all devices may be used in local mode, and none outside it. */
  readonly isLocal: boolean
}

function isAllowed(device: string, { patterns, isLocal }: InterfaceRules): boolean {
  if (patterns.length === 0) return isLocal
  return patterns.some((pattern) => {
    const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    return new RegExp(`^${parts.join('.*')}$`).test(device)
  })
}

/** 403, with the setting in the message. */
export function requireAllowed(field: string, device: string, rules: InterfaceRules): void {
  if (isAllowed(device, rules)) return
  const why =
    rules.patterns.length === 0
      ? 'outside local mode only the devices in the setting allowed_interfaces may be used, and it is empty'
      : `the setting allowed_interfaces has ${rules.patterns.join(', ')}`
  throw forbidden(`${field}: ${device} may not be used here: ${why}`)
}

/** The interfaces of this host that NIOs may use. */
export const allowedInterfaces = (rules: InterfaceRules): NetworkInterface[] =>
  listInterfaces().filter(({ name }) => isAllowed(name, rules))
