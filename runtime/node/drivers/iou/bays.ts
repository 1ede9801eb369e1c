import type { PortRef } from '../../../../src/host-agent.ts'
import { badRequest, conflict } from '../../../../src/lib/errors/api-error.ts'
import type { LineType } from '../../../../src/model/capture.ts'
import { type Bays, baysIssue, maxBays } from '../../../../src/model/kinds/iou.ts'

const unitsOfBay = 4

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
export function requireBays(bays: Bays, isByItself: boolean): void {
  const message = baysIssue(bays)
  if (message === undefined) return
  throw isByItself ? badRequest(message) : conflict(message)
}
