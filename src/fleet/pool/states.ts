import type { MetricFamily } from '../../model/metrics.ts'

/** The number of computes in each state. */
export function stateMetrics(states: readonly string[]): MetricFamily[] {
  const samples = (['connected', 'disconnected', 'refusing'] as const).map((state) => ({
    labels: { state },
    value: states.filter((each) => each === state).length,
  }))
  const help =
    'Computes of the fleet, by state. Requests to a `refusing` compute fail at once, as its last attempts failed.'
  return [{ name: 'patchbay_computes', help, type: 'gauge', samples }]
}
