import { readdir } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import { type MetricFamily, single } from '../../../../src/model/metrics.ts'

export const versionFamily = (version: string): MetricFamily => ({
  name: 'patchbay_info',
  help: 'Always 1; the version is in the label.',
  type: 'gauge',
  samples: [{ labels: { version }, value: 1 }],
})

/** Figures of the service's process, with the metric names of the Prometheus client libraries. */
export async function processMetrics(): Promise<MetricFamily[]> {
  const { user, system } = process.cpuUsage()
  const descriptors = await openDescriptors()
  const rss = process.memoryUsage.rss()
  const startTime = performance.timeOrigin / 1000
  return [
    single('process_resident_memory_bytes', 'gauge', 'Resident memory of the service, bytes.', rss),
    single('process_cpu_seconds_total', 'counter', 'CPU time of the service, seconds.', (user + system) / 1e6),
    single('process_start_time_seconds', 'gauge', 'When the service began, seconds since 1970.', startTime),
    // Not a histogram of the loop's delay: that needs a timer in an idle service. Node counts the busy time anyway.
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

/** Undefined without /proc. */
async function openDescriptors(): Promise<number | undefined> {
  const names = await readdir('/proc/self/fd').catch(() => undefined)
  // One descriptor belongs to this readdir.
  return names && names.length - 1
}
