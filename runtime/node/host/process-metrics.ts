import { readdir } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import { type MetricFamily, single } from '../../../src/model/metrics.ts'

export const versionFamily = (version: string): MetricFamily => ({
  name: 'patchbay_info',
  help: 'Always 1; the version is in the label.',
  type: 'gauge',
  samples: [{ labels: { version }, value: 1 }],
})

/** The service's own process, by the names that dashboards know from other programs. */
export async function processMetrics(): Promise<MetricFamily[]> {
  const { user, system } = process.cpuUsage()
  const descriptors = await openDescriptors()
  return [
    single(
      'process_resident_memory_bytes',
      'gauge',
      'Resident memory of the service, bytes.',
      process.memoryUsage.rss(),
    ),
    single('process_cpu_seconds_total', 'counter', 'CPU time of the service, seconds.', (user + system) / 1e6),
    single(
      'process_start_time_seconds',
      'gauge',
      'When the service began, seconds since 1970.',
      performance.timeOrigin / 1000,
    ),
    // A histogram of the loop's delay needs a timer that goes on at idle; its busy time the loop counts anyway.
    single(
      'patchbay_event_loop_busy_seconds_total',
      'counter',
      'Time that the event loop of the service did not wait, seconds.',
      performance.eventLoopUtilization().active / 1000,
    ),
    ...(descriptors === undefined
      ? []
      : [single('process_open_fds', 'gauge', 'Open file descriptors of the service.', descriptors)]),
  ]
}

/** Undefined where there is no /proc. */
async function openDescriptors(): Promise<number | undefined> {
  const names = await readdir('/proc/self/fd').catch(() => undefined)
  // One of them is the directory that is being read.
  return names && names.length - 1
}
