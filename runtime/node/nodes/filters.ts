import { ApiError, badRequest } from '../../../src/errors/api-error.ts'
import { type LineType, type LinkTypeName, linkTypes } from '../../../src/model/capture.ts'
import type { Filters } from '../../../src/schema/filters.ts'
import { compileBpf } from '../bpf/compile.ts'
import type { BpfProgram } from '../bpf/program.ts'
import type { Filter } from '../keeper-protocol/protocol.ts'
import { linkTypeOn } from './line.ts'

const defaultBurstKb = 16
const defaultQueueMs = 100
const defaultHoldMs = 10
/** What libpcap calls 11 (pcap/dlt.h) has another number in a file; the others have one for both. */
const dltOfAtm = 11

/** The filters as the switch takes them, in their order, without those that are off. 400 for a BPF expression that is wrong. */
export function compileFilters(filters: Filters = {}, line: LineType = 'ethernet'): Filter[] {
  return Object.entries(filters).flatMap(([type, parameters]) => {
    const [first, ...more] = parameters as readonly (number | string)[]
    if (first === undefined || first === 0 || first === '') return []
    return type === 'bpf' ? bpf(String(first), more[0], line) : [numeric(type, Number(first), more.map(Number))]
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

function bpf(text: string, given: string | number | undefined, line: LineType): Filter[] {
  const linkType = linkTypeOn(line, given === undefined ? undefined : named(String(given)), 'filters.bpf[1]')
  const dlt = linkType === 'DLT_ATM_RFC1483' ? dltOfAtm : linkTypes[linkType]
  const expressions = text.split('\n').filter((line) => line.trim() !== '')
  if (expressions.length === 0) return []
  return [{ type: 'bpf', programs: expressions.map((expression) => compiled(expression, dlt, linkType)) }]
}

/** The link type that a parameter names, with or without its prefix. */
function named(given: string): LinkTypeName {
  const name = given.startsWith('DLT_') ? given : `DLT_${given}`
  const known = Object.keys(linkTypes) as LinkTypeName[]
  const found = known.find((it) => it === name)
  if (found !== undefined) return found
  throw badRequest(`filters.bpf[1]: unknown link type, expected one of ${known.join(', ')}`)
}

function compiled(expression: string, dlt: number, linkType: LinkTypeName): BpfProgram {
  try {
    return compileBpf(expression, dlt)
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400) throw error
    // Most expressions are of Ethernet, and the fault is often that the line is not.
    const more =
      linkType === 'DLT_EN10MB'
        ? '; expected tcpdump expressions such as "icmp" or "tcp port 80"'
        : `; frames of this port are read as ${linkType}`
    throw badRequest(`filters.bpf: ${error.message}${more}`, { cause: error })
  }
}
