import { Type } from '@sinclair/typebox'
import { ApiError, badRequest } from '../../../../src/lib/errors/api-error.ts'
import { type LinkTypeName, linkTypes } from '../../../../src/model/capture.ts'
import { maxInstructions } from '../bpf/check.ts'
import { compileBpf } from '../bpf/compile.ts'
import { linkTypeOn } from '../bpf/link-type.ts'
import { bpfMatcher } from '../bpf/matcher.ts'
import type { BpfInstruction, BpfProgram } from '../bpf/program.ts'
import { row } from './row.ts'

/** DLT_ATM_RFC1483 of libpcap on Linux (pcap/dlt.h); in files it has another number. The other link types have one number. */
const dltOfAtm = 11

const Instruction = Type.Unsafe<BpfInstruction>(
  Type.Array(Type.Integer({ minimum: 0, maximum: 0xffff_ffff }), { minItems: 4, maxItems: 4 }),
)
const Program = Type.Unsafe<BpfProgram>(Type.Array(Instruction, { minItems: 1, maxItems: maxInstructions }))

/** Drops the frames that one of the classic BPF programs matches. */
export const bpf = row({
  compiled: { programs: Type.Unsafe<readonly BpfProgram[]>(Type.Array(Program, { maxItems: 4096 })) },
  compile([text, given], line) {
    const expressions = String(text)
      .split('\n')
      .filter((it) => it.trim() !== '')
    const linkType = linkTypeOn(line, given === undefined ? undefined : named(String(given)), 'filters.bpf[1]')
    if (expressions.length === 0) return undefined
    return { programs: expressions.map((expression) => compiled(expression, linkType)) }
  },
  stage({ programs }, { drop }) {
    const matchers = programs.map(bpfMatcher)
    return (bytes, offset, length, due) => {
      for (const matches of matchers) if (matches(bytes, offset, length)) return drop()
      return due
    }
  },
})

/** The link type of a parameter, with or without the prefix `DLT_`. */
function named(given: string): LinkTypeName {
  const name = given.startsWith('DLT_') ? given : `DLT_${given}`
  const known = Object.keys(linkTypes) as LinkTypeName[]
  const found = known.find((it) => it === name)
  if (found !== undefined) return found
  throw badRequest(`filters.bpf[1]: unknown link type, expected one of ${known.join(', ')}`)
}

function compiled(expression: string, linkType: LinkTypeName): BpfProgram {
  try {
    return compileBpf(expression, linkType === 'DLT_ATM_RFC1483' ? dltOfAtm : linkTypes[linkType])
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400) throw error
    // Most expressions are for Ethernet; on another line that is often the fault.
    const more =
      linkType === 'DLT_EN10MB'
        ? '; expected tcpdump expressions such as "icmp" or "tcp port 80"'
        : `; frames of this port are read as ${linkType}`
    throw badRequest(`filters.bpf: ${error.message}${more}`, { cause: error })
  }
}
