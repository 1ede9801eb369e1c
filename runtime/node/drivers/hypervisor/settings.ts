import { badRequest, conflict } from '../../../../src/lib/errors/api-error.ts'
import { repeated } from '../../../../src/lib/repeated.ts'
import type { HypervisorUpdate } from '../../../../src/model/kinds/hypervisor.ts'
import { withChanges } from '../../engine/nodes/record.ts'
import type { HypervisorDriver } from './driver.ts'
import { type HypervisorProperties, plainFields } from './properties.ts'

/** The settings with the changes; 409 for changes that need a stopped node. */
export function changedSettings(
  before: HypervisorProperties,
  changes: HypervisorUpdate,
  isStopped: boolean,
): HypervisorProperties {
  const next = withChanges(before, changes, plainFields)
  if (changes.acpi_shutdown != null && changes.on_close == null)
    next.on_close = changes.acpi_shutdown ? 'shutdown_signal' : 'power_off'
  // Some clients send the defined size back.
  if (changes.ram != null && changes.ram !== 0 && changes.ram !== (before.ram || before.defined_ram)) {
    if (!isStopped) throw conflict('ram: stop the node first')
    next.ram = changes.ram
  }
  return next
}

/** 400 for adapter types that the driver does not have. */
export function requireTypes(
  driver: HypervisorDriver,
  { adapter_type, custom_adapters }: Pick<HypervisorProperties, 'adapter_type' | 'custom_adapters'>,
): void {
  const twice = repeated(custom_adapters.map(({ adapter_number }) => adapter_number))
  if (twice !== undefined) throw badRequest(`custom_adapters: adapter_number ${twice} occurs twice`)
  const custom = custom_adapters.map(
    (it, index) => [`custom_adapters[${index}].adapter_type`, it.adapter_type] as const,
  )
  for (const [field, type] of [['adapter_type', adapter_type] as const, ...custom]) {
    if (type == null || driver.adapterType(type) !== undefined) continue
    throw badRequest(`${field}: ${driver.name} has no ${type}; it has ${driver.adapterTypes.join(', ')}`)
  }
}
