import { onTestFinished } from 'vitest'
import type { ApplianceAddress, ApplianceEngine } from '../../src/fleet/appliance-vm/appliance-engine.ts'
import type { ApplianceTimeouts } from '../../src/fleet/appliance-vm/appliance-start.ts'
import { ApplianceVmService } from '../../src/fleet/appliance-vm/appliance-vm.ts'
import { RemoteEngine } from '../../src/fleet/appliance-vm/remote-engine.ts'
import type { LocalHost } from '../../src/fleet/pool/local-compute.ts'
import type { Compute } from '../../src/model/compute.ts'
import { openFleet, StandIn } from './fleet.ts'
import { MemoryAppliance } from './memory-appliance.ts'

/** An engine that does as the test says, and writes down what was wanted of it. */
class TestEngine implements ApplianceEngine {
  readonly view = {
    ...{ engine_id: 'libvirt', name: 'test', description: '' },
    ...{ support_when_exit: true, support_headless: false, support_ram: true },
  }
  readonly done: string[] = []
  readonly changed = new Set<() => void>()
  isOn = false
  obeys = true
  port: number | undefined
  fault: Error | undefined
  /** What a start, and an end, waits for. */
  gate: Promise<void> = Promise.resolve()

  async vms(): Promise<string[]> {
    if (this.fault !== undefined) throw this.fault
    return ['a', 'b']
  }

  async start({ vmname }: { vmname: string | null }): Promise<void> {
    this.done.push(`start ${vmname}`)
    await this.gate
    if (this.fault !== undefined) throw this.fault
    this.isOn = true
  }

  async addresses(): Promise<ApplianceAddress[]> {
    if (this.port === undefined) return []
    return [{ protocol: 'http', host: '127.0.0.1', port: this.port, user: null, password: null }]
  }

  async isRunning(): Promise<boolean> {
    return this.isOn
  }

  async end({ vmname }: { vmname: string | null }, how: string, skipGracePeriod: AbortSignal): Promise<void> {
    this.done.push(`${how} ${vmname}`)
    await this.gate
    if (!this.obeys) {
      await new Promise((resolve) => skipGracePeriod.addEventListener('abort', resolve))
      this.done.push(`hurry ${vmname}`)
    }
    if (this.fault !== undefined) throw this.fault
    this.isOn = false
  }

  watch(_: unknown, changed: () => void): () => void {
    this.changed.add(changed)
    return () => void this.changed.delete(changed)
  }
}

const soon: ApplianceTimeouts = {
  startMs: 15_000,
  probeMs: 1000,
  pauseMs: 5,
  endMs: 1000,
  exitMs: 1000,
  againMs: 0,
  checkMs: 60_000,
}

export async function newAppliance(
  bounds: Partial<ApplianceTimeouts> = {},
  store = new MemoryAppliance(),
  local?: LocalHost,
) {
  const open = await openFleet(local && { local })
  const engine = new TestEngine()
  const engines = { libvirt: engine, remote: new RemoteEngine(open.fleet) }
  const appliance = await ApplianceVmService.open({
    fleet: open.fleet,
    engines,
    store,
    timeouts: { ...soon, ...bounds },
  })
  onTestFinished(() => appliance.close())
  /** Resolves when the compute vm is there, and shown so. */
  const until = async (id: string, shown: Partial<Compute>) => {
    for (;;) {
      const next = new Promise<void>((resolve) => {
        const stop = open.fleet.listen(() => {
          stop()
          resolve()
        })
      })
      if ((await open.fleet.get(id).catch(() => undefined)) !== undefined) return open.until(id, shown)
      await next
    }
  }
  return { ...open, until, engine, appliance, store }
}

/** One whose VM answers. */
export async function running(bounds: Partial<ApplianceTimeouts> = {}) {
  const compute = await StandIn.start()
  const all = await newAppliance(bounds)
  all.engine.port = compute.port
  await all.appliance.update({ enable: true, vmname: 'a' })
  return { ...all, compute }
}

export const vmOf = ({ fleet }: Awaited<ReturnType<typeof newAppliance>>) => fleet.get('vm').catch(() => undefined)
