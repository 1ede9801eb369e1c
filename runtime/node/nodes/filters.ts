import { badRequest } from '../../../src/errors.ts'
import { linkTypes } from '../../../src/model/capture.ts'
import type { Filters } from '../../../src/model/filters.ts'
import { compileBpf } from '../bpf/compile.ts'
import type { Filter } from '../keeper/protocol.ts'

const defaultBurstKb = 16
const defaultQueueMs = 100
const defaultHoldMs = 10
/** What libpcap calls 11 (pcap/dlt.h) has another number in a file; the others have one for both. */
const dltOfAtm = 11

/** The filters as the switch takes them, in their order, without those that are off. 400 for a BPF expression that is wrong. */
export function compileFilters(filters: Filters = {}): Filter[] {
  return Object.entries(filters).flatMap(([type, parameters]) => {
    const [first, ...more] = parameters as readonly (number | string)[]
    if (first === undefined || first === 0 || first === '') return []
    return type === 'bpf' ? bpf(String(first), more[0]) : [numeric(type, Number(first), more.map(Number))]
  })
}

function numeric(type: string, first: number, [second, third]: readonly number[]): Filter {
  switch (type) {
    case 'frequency_drop':
      return { type, every: first }
    case 'packet_loss':
    case 'corrupt':
    case 'duplicate':
      return { type, percent: first }
    case 'delay':
      return { type, ms: first, jitter_ms: second ?? 0 }
    case 'rate':
      return { type, kbps: first, burst_kb: second ?? defaultBurstKb, queue_ms: third ?? defaultQueueMs }
    case 'reorder':
      if (first > 100) throw badRequest(`filters.reorder[0]: expected a number from 0 to 100, got ${first}`)
      return { type, percent: first, ms: second ?? defaultHoldMs }
    default:
      throw badRequest(`filters.${type}: unknown filter`)
  }
}

function bpf(text: string, given: string | number = 'DLT_EN10MB'): Filter[] {
  const name = String(given).startsWith('DLT_') ? String(given) : `DLT_${given}`
  const linkType = Object.entries(linkTypes).find(([known]) => known === name)?.[1]
  if (linkType === undefined) {
    throw badRequest(`filters.bpf[1]: unknown link type, expected one of ${Object.keys(linkTypes).join(', ')}`)
  }
  const dlt = linkType === linkTypes.DLT_ATM_RFC1483 ? dltOfAtm : linkType
  const expressions = text.split('\n').filter((line) => line.trim() !== '')
  if (expressions.length === 0) return []
  return [{ type: 'bpf', programs: expressions.map((expression) => compileBpf(expression, dlt)) }]
}
