import { badRequest, conflict } from '../../../../src/errors/api-error.ts'
import type { PortRef } from '../../../../src/host-agent.ts'
import type { LineType } from '../../../../src/model/capture.ts'

const unitsOfBay = 4
/** Limit of Ethernet and serial adapters together. */
const maxBays = 16

/** The adapters of a router; each takes a bay. */
export type Bays = { readonly ethernet_adapters: number; readonly serial_adapters: number }

/** Ethernet adapters first, then serial ones, with four ports each. */
export const portsOf = ({ ethernet_adapters, serial_adapters }: Bays): readonly PortRef[] =>
  Array.from({ length: (ethernet_adapters + serial_adapters) * unitsOfBay }, (_, index) => ({
    adapter: Math.floor(index / unitsOfBay),
    port: index % unitsOfBay,
  }))

export const lineIn = ({ ethernet_adapters }: Bays, { adapter }: PortRef): LineType =>
  adapter < ethernet_adapters ? 'ethernet' : 'serial'

/** The number of a port in the datagrams of IOU. */
export const netioPortOf = ({ adapter, port }: PortRef): number => adapter + port * maxBays

/** Checks the number of adapters: 400 when the request alone exceeds the limit, 409 when it does with the present settings. */
export function requireBays({ ethernet_adapters, serial_adapters }: Bays, isByItself: boolean): void {
  const bays = ethernet_adapters + serial_adapters
  if (bays <= maxBays) return
  const fields = 'ethernet_adapters and serial_adapters'
  const message = `${fields}: expected at most ${maxBays} in all, got ${ethernet_adapters} and ${serial_adapters}`
  throw isByItself ? badRequest(message) : conflict(message)
}
