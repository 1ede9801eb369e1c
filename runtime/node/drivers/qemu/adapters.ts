import { macAfter } from '../../../../src/model/kinds/mac-addresses.ts'
import type { CustomAdapter } from '../../../../src/model/kinds/machine-emulator.ts'

/** A network adapter of the guest. */
export type Adapter = { readonly model: string; readonly mac: string }

interface AdapterSettings {
  readonly adapters: number
  readonly adapter_type: string
  readonly mac_address: string
  readonly custom_adapters: readonly CustomAdapter[]
}

/** The adapters of a machine: consecutive MAC addresses and one model, except for custom adapters. */
export function adaptersOf({ adapters, adapter_type, mac_address, custom_adapters }: AdapterSettings): Adapter[] {
  const custom = new Map(custom_adapters.map((it) => [it.adapter_number, it]))
  return Array.from({ length: adapters }, (_, number) => ({
    model: custom.get(number)?.adapter_type ?? adapter_type,
    mac: (custom.get(number)?.mac_address ?? macAfter(mac_address, number)).toLowerCase(),
  }))
}

/** The default address of the first adapter, made from the ends of both ids. */
export function generatedMac(projectId: string, nodeId: string): string {
  const end = (id: string) => id.slice(-4).toLowerCase()
  return `0c${end(projectId)}${end(nodeId)}00`.replace(/(..)(?=.)/g, '$1:')
}
