import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { VmAdapter, VmPlan } from '../../../../runtime/node/drivers/hypervisor/driver.ts'
import {
  VirtualBoxDriver,
  type VirtualBoxOptions,
} from '../../../../runtime/node/drivers/hypervisor/virtualbox/virtualbox.ts'
import { standIn } from '../../../stand-in/virtualbox/build.ts'
import { World } from '../../../stand-in/virtualbox/world.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { hangMs } from '../../../support/limits.ts'
import { freePorts } from '../../../support/ports.ts'

export interface DriverWorld {
  readonly world: World
  readonly driver: VirtualBoxDriver
  /** What is not told to anybody but the log. */
  readonly warnings: string[]
  readonly directory: string
  /** Another service with the same directory, after the first one was killed. */
  readonly again: () => VirtualBoxDriver
}

const times = { shutdownMs: 15_000, settleMs: 15_000, serialMs: 15_000, pollMs: 20 }

/** For what happens soon, but on a busy host not at once. */
export const soon = { timeout: hangMs, interval: 20 }

/** A driver whose VirtualBox is the stand-in. */
export async function driverWorld(options: Partial<VirtualBoxOptions> = {}): Promise<DriverWorld> {
  const directory = await freshDirectory()
  const programs = await standIn()
  const world = new World(join(directory, 'home'), programs)
  await world.serve()
  const program = join(programs, 'VBoxManage')
  const before = process.env.VBOX_USER_HOME
  process.env.VBOX_USER_HOME = world.directory
  const warnings: string[] = []
  const quiet = () => {}
  const log = { debug: quiet, info: quiet, error: quiet, warn: (_: object, text: string) => void warnings.push(text) }
  const again = () =>
    new VirtualBoxDriver({
      path: () => program,
      directory: join(directory, 'run'),
      log,
      times,
      watchMs: 60,
      ...options,
    })
  const driver = again()
  onTestFinished(async () => {
    world.end()
    await driver.close()
    if (before === undefined) delete process.env.VBOX_USER_HOME
    else process.env.VBOX_USER_HOME = before
  })
  return { world, driver, warnings, directory, again }
}

export const adapter = (index: number, carrier = true): VmAdapter => {
  const guestPort = freePorts(2)
  return { index, guestPort, switchPort: guestPort + 1, carrier }
}

export const planOf = (adapters: readonly VmAdapter[], more: Partial<VmPlan> = {}): VmPlan => ({
  adapters,
  adapterType: 'Intel PRO/1000 MT Desktop (82540EM)',
  useAnyAdapter: false,
  serialPort: 1,
  headless: true,
  ...more,
})
