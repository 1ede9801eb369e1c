import { badRequest, conflict } from '../../../../src/errors/api-error.ts'
import type { PortRef } from '../../../../src/host-agent.ts'
import type { LineType } from '../../../../src/model/capture.ts'

const unitsOfBay = 4
/** What a program can have, of both kinds together. */
const maxBays = 16

/** How many adapters a router has; each has a bay. */
export interface Bays {
  readonly ethernet_adapters: number
  readonly serial_adapters: number
}

/** Ethernet adapters first, then serial ones, four ports each. */
export function portsOf({ ethernet_adapters, serial_adapters }: Bays): readonly PortRef[] {
  return Array.from({ length: (ethernet_adapters + serial_adapters) * unitsOfBay }, (_, index) => ({
    adapter: Math.floor(index / unitsOfBay),
    port: index % unitsOfBay,
  }))
}

export const lineIn = ({ ethernet_adapters }: Bays, { adapter }: PortRef): LineType =>
  adapter < ethernet_adapters ? 'ethernet' : 'serial'

/** The number of a port in the datagrams of a program. */
export const netioPortOf = ({ adapter, port }: PortRef): number => adapter + port * maxBays

/** 400 when a request by itself asks for more than a program can have, 409 when it does together with what is there. */
export function requireBays({ ethernet_adapters, serial_adapters }: Bays, isByItself: boolean): void {
  const bays = ethernet_adapters + serial_adapters
  if (bays <= maxBays) return
  const message =
    `ethernet_adapters and serial_adapters: expected at most ${maxBays} in all, ` +
    `got ${ethernet_adapters} and ${serial_adapters}`
  throw isByItself ? badRequest(message) : conflict(message)
}
