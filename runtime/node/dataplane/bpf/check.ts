import type { BpfInstruction, BpfProgram } from './program.ts'

/** The kernel's limit (BPF_MAXINSNS in linux/bpf_common.h). */
export const maxInstructions = 4096

const scratchSize = 16

/** Throws an Error unless the program always ends: known instructions, only forward jumps inside the program, a return at the end. */
export function checkProgram(program: BpfProgram): void {
  if (program.length === 0) throw new Error('a BPF program has at least one instruction')
  if (program.length > maxInstructions) throw new Error(`a BPF program has at most ${maxInstructions} instructions`)
  program.forEach((instruction, index) => {
    const fault = faultOf(instruction, program.length - index - 1)
    if (fault !== undefined) throw new Error(`instruction ${index} of the BPF program ${fault}`)
  })
}

function faultOf(instruction: BpfInstruction, left: number): string | undefined {
  const [code, jt, jf, k] = instruction
  const isInRange = isUnsigned(code, 16) && isUnsigned(jt, 8) && isUnsigned(jf, 8) && isUnsigned(k, 32)
  if (instruction.length !== 4 || !isInRange) return 'is not four numbers in their ranges'
  if (!known.has(code)) return `has the unknown code ${code}`
  if (scratch.has(code) && k >= scratchSize) return `uses memory cell ${k} of ${scratchSize}`
  if (isReturn(code)) return undefined
  if (left === 0) return 'is the last and does not return'
  if ((code & 0x07) !== 0x05) return undefined
  const farthest = code === 0x05 ? k : Math.max(jt, jf)
  return farthest < left ? undefined : 'jumps out of it, or backward'
}

const isUnsigned = (value: number, bits: number) => Number.isInteger(value) && value >= 0 && value < 2 ** bits

const isReturn = (code: number) => code === 0x06 || code === 0x16

/** LD and LDX from scratch memory, ST and STX. */
const scratch = new Set([0x60, 0x61, 0x02, 0x03])

// linux/bpf_common.h: LD of word, halfword and byte, at k and at X + k; their immediates, lengths and memory.
const loads = [0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x00, 0x01, 0x80, 0x81, 0x60, 0x61, 0xb1]
const operations = [0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x90, 0xa0].flatMap((op) => [op | 0x04, op | 0x0c])
const jumps = [0x10, 0x20, 0x30, 0x40].flatMap((op) => [op | 0x05, op | 0x0d])
const known = new Set([...loads, 0x02, 0x03, ...operations, 0x84, 0x05, ...jumps, 0x06, 0x16, 0x07, 0x87])
