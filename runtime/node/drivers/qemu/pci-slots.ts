import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { type BinaryFacts, isAtLeast } from './probe.ts'

const slotsOfBus = 32
/** Host bridge, south bridge, graphics, and one spare slot. */
const builtIn = 4

/** Slots of network adapters on PCI buses. */
interface PciPlan {
  /** Arguments of the bridges, which must come before devices behind them. */
  readonly bridges: readonly string[]
  /** The slot of the n-th adapter; empty when QEMU chooses it. */
  readonly addressOf: (adapter: number) => string
}

/**
 * Slots for adapters beside `others` further devices. QEMU chooses the slots on the first bus, by which guests name their
 * interfaces. Further adapters have fixed slots behind bridges.
 */
export function pciPlan(facts: Pick<BinaryFacts, 'version' | 'devices'>, adapters: number, others: number): PciPlan {
  const first = (bridges: number) => builtIn + others + bridges
  let bridges = 0
  // A bridge takes a slot itself, so the number of bridges depends on itself.
  while (adapters > 0 && Math.floor((first(bridges) + adapters - 1) / slotsOfBus) > bridges) bridges++
  if (bridges > 1 && !isAtLeast(facts.version, 2, 4))
    throw conflict(`${adapters} adapters need more than one PCI bridge, which requires QEMU 2.4 or later`)
  if (bridges > 0 && !['i82801b11-bridge', 'pci-bridge'].every((model) => facts.devices.has(model)))
    throw conflict(`${adapters} adapters need PCI bridges, which this emulator does not have`)
  const hex = (number: number) => `0x${number.toString(16)}`
  return {
    bridges: Array.from({ length: bridges }, (_, index) => index + 1).flatMap((bridge) => [
      ...['-device', `i82801b11-bridge,id=pb-dmi${bridge}`],
      ...[
        '-device',
        `pci-bridge,id=pb-bridge${bridge},bus=pb-dmi${bridge},chassis_nr=0x1,addr=${hex(bridge)},shpc=off`,
      ],
    ]),
    addressOf(adapter) {
      const slot = first(bridges) + adapter
      if (slot < slotsOfBus) return ''
      return `,bus=pb-bridge${Math.floor(slot / slotsOfBus)},addr=${hex(slot % slotsOfBus)}`
    },
  }
}
