import { abortable } from '../async/abort.ts'
import { pause } from '../async/pause.ts'
import { originOf } from '../client/address.ts'
import { ComputeRefused } from '../client/greeting.ts'
import { conflict } from '../errors/api-error.ts'
import type { ApplianceVmRecord } from '../model/appliance-vm.ts'
import type { ApplianceEngine, AppliancePlace } from './appliance-engine.ts'
import { computeRecord } from './appliance-record.ts'
import type { Fleet } from './fleet.ts'

/** How long things may take, ms. */
export interface ApplianceTimeouts {
  /** From the start of the VM until a service answers in it. */
  readonly startMs: number
  /** One question whether a service is there, and the pause before the next one. */
  readonly probeMs: number
  readonly pauseMs: number
  /** How long a guest has to obey its power button before it is switched off; and when the service ends. */
  readonly endMs: number
  readonly exitMs: number
  /** A request does not start a VM again that failed to start just now. */
  readonly againMs: number
  /** From when the VM is the compute until its network is compared with that of this service. */
  readonly checkMs: number
}

export const defaultApplianceTimeouts: ApplianceTimeouts = {
  startMs: 300_000,
  probeMs: 10_000,
  pauseMs: 1000,
  endMs: 120_000,
  exitMs: 60_000,
  againMs: 5000,
  checkMs: 10_000,
}

export interface Wanted {
  readonly fleet: Fleet
  readonly engine: ApplianceEngine
  readonly settings: ApplianceVmRecord
  readonly signal: AbortSignal
  readonly timeouts: ApplianceTimeouts
  /** Told what is waited for. */
  readonly tell: (what: string) => void
}

/** Waits until a service answers in the VM that can be used as a compute; where. */
export async function answering({ fleet, engine, settings, signal, timeouts, tell }: Wanted): Promise<AppliancePlace> {
  for (;;) {
    const places = await abortable(engine.places(settings), signal)
    const known = places.map(originOf).join(', ')
    tell(known === '' ? 'is starting: its address is not known yet' : `is starting: nothing answers yet at ${known}`)
    let refusal: ComputeRefused | undefined
    for (const place of places) {
      try {
        const soon = AbortSignal.any([signal, AbortSignal.timeout(timeouts.probeMs)])
        await abortable(fleet.probe(computeRecord(settings, place), soon), soon)
        return place
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof ComputeRefused)
          refusal ??= new ComputeRefused(`what answers at ${originOf(place)}: ${error.message}`)
      }
    }
    if (refusal !== undefined) throw refusal
    if (!(await abortable(engine.isRunning(settings), signal)))
      throw conflict('it ended before a service answered in it')
    await pause(timeouts.pauseMs, signal)
    signal.throwIfAborted()
  }
}

/** Shows by the compute what is done to the VM. */
export function progress(fleet: Fleet, settings: ApplianceVmRecord): (what: string) => void {
  let last = ''
  return (what) => {
    if (what === last) return
    last = what
    fleet.enrol(computeRecord(settings), `The appliance VM ${JSON.stringify(settings.vmname)} ${what}`)
  }
}
