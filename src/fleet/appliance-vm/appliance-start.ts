import { originOf } from '../../compute/remote/address.ts'
import { ComputeRefused } from '../../compute/remote/greeting.ts'
import { abortable } from '../../lib/async/abort.ts'
import { pause } from '../../lib/async/pause.ts'
import { conflict } from '../../lib/errors/api-error.ts'
import type { ApplianceVmRecord } from '../../model/appliance-vm.ts'
import type { Fleet } from '../pool/fleet.ts'
import type { ApplianceAddress, ApplianceEngine } from './appliance-engine.ts'
import { computeRecord } from './appliance-record.ts'

/** Timeouts, ms. */
export const defaultApplianceTimeouts = {
  /** From the start of the VM until a service answers in it. */
  startMs: 300_000,
  /** One probe of the service, and the pause before the next probe. */
  probeMs: 10_000,
  pauseMs: 1000,
  /** How long the guest may take after its power button is pressed, before power-off; also at the end of the service. */
  endMs: 120_000,
  exitMs: 60_000,
  /** How long after a failed start requests do not start the VM again. */
  againMs: 5000,
  /** Delay before the check that the VM is in the network of this service. */
  checkMs: 10_000,
}
export type ApplianceTimeouts = Readonly<typeof defaultApplianceTimeouts>

export interface Wanted {
  readonly fleet: Fleet
  readonly engine: ApplianceEngine
  readonly settings: ApplianceVmRecord
  readonly signal: AbortSignal
  readonly timeouts: ApplianceTimeouts
  /** Called with a description of the current wait. */
  readonly report: (what: string) => void
}

/** Waits until a usable service answers in the VM; resolves with its address. */
export async function answering({
  fleet,
  engine,
  settings,
  signal,
  timeouts,
  report,
}: Wanted): Promise<ApplianceAddress> {
  for (;;) {
    const addresses = await abortable(engine.addresses(settings), signal)
    const known = addresses.map(originOf).join(', ')
    report(known === '' ? 'is starting: its address is not known yet' : `is starting: nothing answers yet at ${known}`)
    let refusal: ComputeRefused | undefined
    for (const address of addresses) {
      try {
        const soon = AbortSignal.any([signal, AbortSignal.timeout(timeouts.probeMs)])
        await abortable(fleet.probe(computeRecord(settings, address), soon), soon)
        return address
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof ComputeRefused)
          refusal ??= new ComputeRefused(`the program at ${originOf(address)} cannot be used: ${error.message}`)
      }
    }
    if (refusal !== undefined) throw refusal
    if (!(await abortable(engine.isRunning(settings), signal))) throw conflict('it stopped before its service answered')
    await pause(timeouts.pauseMs, signal)
    signal.throwIfAborted()
  }
}

/** Shows the progress of the start as the state of the compute. */
export function progress(fleet: Fleet, settings: ApplianceVmRecord): (what: string) => void {
  let last = ''
  return (what) => {
    if (what === last) return
    last = what
    fleet.registerEphemeral(computeRecord(settings), `The appliance VM ${JSON.stringify(settings.vmname)} ${what}`)
  }
}
