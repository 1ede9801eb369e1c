import { readFile, statfs } from 'node:fs/promises'
import { availableParallelism, loadavg, totalmem } from 'node:os'
import type { HostLoad, Load } from '../../../../src/model/host.ts'
import { availableMemory } from './load.ts'

/** The load of the host with the figures behind it. `directory`: where its projects are. */
export async function hostLoad(load: Load, directory: string): Promise<HostLoad> {
  const [swap, disk] = await Promise.all([swapOf(), statfs(directory).catch(() => undefined)])
  return {
    ...load,
    load_average_percent: loadavg().map((average) => Math.round((average / availableParallelism()) * 100)),
    memory_total: totalmem(),
    memory_free: availableMemory(),
    ...swap,
    ...(disk !== undefined && disk.blocks > 0 && { disk_usage_percent: (1 - disk.bavail / disk.blocks) * 100 }),
  }
}

/** The swap space, bytes; nothing where the system does not say. */
async function swapOf(): Promise<Pick<HostLoad, 'swap_total' | 'swap_free'>> {
  const text = await readFile('/proc/meminfo', 'utf8').catch(() => '')
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1]) * 1024
  const [swap_total, swap_free] = [bytes('SwapTotal'), bytes('SwapFree')]
  return Number.isNaN(swap_total + swap_free) ? {} : { swap_total, swap_free }
}
