import type { MetricFamily, MetricSample } from '../../model/metrics.ts'

/** Media type of the text that `exposition` makes. */
export const expositionMedia = 'text/plain; version=0.0.4; charset=utf-8'

/**
 * Families in Prometheus' text format 0.0.4. They are sorted by name and labels, so that two scrapes can be compared line by line.
 */
export function exposition(families: readonly MetricFamily[]): string {
  return families
    .toSorted((a, b) => order(a.name, b.name))
    .map(block)
    .join('')
}

function block({ name, help, type, samples }: MetricFamily): string {
  const lines = samples
    .map((sample) => ({ series: labelText(sample, 'le'), line: sampleLine(name, sample) }))
    // Without `le` in the key, the stable sort keeps the buckets of a series in their order and before its sum and count.
    .toSorted((a, b) => order(a.series, b.series))
    .map(({ line }) => line)
  return [`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n')
}

function sampleLine(name: string, sample: MetricSample): string {
  const labels = labelText(sample)
  return `${name}${sample.suffix ?? ''}${labels === '' ? '' : `{${labels}}`} ${numberText(sample.value)}`
}

function labelText({ labels }: MetricSample, left?: string): string {
  return Object.entries(labels)
    .filter(([name]) => name !== left)
    .map(([name, value]) => `${name}="${escaped(value).replaceAll('"', '\\"')}"`)
    .join(',')
}

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value)
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
}

/** By code unit: the locale of the machine must not change the order. */
const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
