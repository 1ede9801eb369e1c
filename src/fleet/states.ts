import type { MetricFamily } from '../model/metrics.ts'

/** The number of computes in each state. */
export function stateMetrics(states: readonly string[]): MetricFamily[] {
  const samples = (['connected', 'disconnected', 'refusing'] as const).map((state) => ({
    labels: { state },
    value: states.filter((it) => it === state).length,
  }))
  const help =
    'Computes of the fleet, by state; requests to one that is refusing are answered at once, as it failed again and again.'
  return [{ name: 'patchbay_computes', help, type: 'gauge', samples }]
}
