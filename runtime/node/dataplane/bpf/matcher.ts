import { checkProgram } from './check.ts'
import type { BpfInstruction, BpfProgram } from './program.ts'

/** Whether the frame of `length` bytes at `offset` of `bytes` matches. */
export type Matcher = (bytes: Uint8Array, offset: number, length: number) => boolean

/**
 * Compiles classic BPF to a function, with the kernel's semantics: 32-bit unsigned arithmetic, and no match for a frame
 * that is too short for a load or that leads to a division by zero. Throws an Error for a program that is not valid.
 * Ancillary data, at 0xfffff000 and above, is out of every frame's bounds, and so no match.
 */
export function bpfMatcher(program: BpfProgram): Matcher {
  // The numbers of the program become source text, so the program must be checked first.
  checkProgram(program)
  return new Function('bytes', 'offset', 'length', source(program)) as Matcher
}

function source(program: BpfProgram): string {
  const targets = targetsOf(program)
  const steps = program.map((instruction, index) => {
    const label = targets.has(index) ? `case ${index}:` : ''
    return `${label}${statement(instruction, index, program)}`
  })
  // Scratch memory as variables: no allocation, and no values from the frame before.
  return `'use strict'
let A=0,X=0,at=0,step=0
let ${Array.from({ length: 16 }, (_, cell) => `M${cell}=0`).join(',')}
for(;;)switch(step){case 0:
${steps.join('\n')}
}`
}

/** The targets of jumps. The first instruction is none, because jumps go forward. */
function targetsOf(program: BpfProgram): Set<number> {
  const targets = new Set<number>()
  program.forEach(([code, jt, jf, k], index) => {
    if (code === 0x05) targets.add(index + 1 + k)
    else if ((code & 0x07) === 0x05) targets.add(index + 1 + jt).add(index + 1 + jf)
  })
  return targets
}

function statement(instruction: BpfInstruction, index: number, program: BpfProgram): string {
  const [code, jt, jf, k] = instruction
  switch (code & 0x07) {
    case 0x00:
      return load('A', code, k)
    case 0x01:
      return code === 0xb1 ? `${bounds(String(k), 1)}X=(bytes[at]&15)<<2` : load('X', code, k)
    case 0x02:
      return `M${k}=A`
    case 0x03:
      return `M${k}=X`
    case 0x04:
      return arithmetic[code & 0xf0]?.(operandOf(code, k)) ?? ''
    case 0x05:
      if (code === 0x05) return jump(index + 1 + k, program)
      return `if(${conditions[code & 0xf0]?.(operandOf(code, k))}){${jump(index + 1 + jt, program)}}else{${jump(index + 1 + jf, program)}}`
    case 0x06:
      return code === 0x16 ? 'return A!==0' : `return ${k !== 0}`
    default:
      return code === 0x07 ? 'X=A' : 'A=X'
  }
}

const operandOf = (code: number, k: number) => ((code & 0x08) === 0 ? String(k) : 'X')

function load(register: 'A' | 'X', code: number, k: number): string {
  switch (code & 0xe0) {
    case 0x00:
      return `${register}=${k}`
    case 0x60:
      return `${register}=M${k}`
    case 0x80:
      return `${register}=length`
    default: {
      // The kernel adds in 32 bits, so a program can subtract from the index.
      const index = (code & 0xe0) === 0x20 ? String(k) : `((X+${k})>>>0)`
      return packetLoad(index, code & 0x18)
    }
  }
}

function packetLoad(index: string, size: number): string {
  if (size === 0x10) return `${bounds(index, 1)}A=bytes[at]`
  if (size === 0x08) return `${bounds(index, 2)}A=bytes[at]<<8|bytes[at+1]`
  return `${bounds(index, 4)}A=(bytes[at]<<24|bytes[at+1]<<16|bytes[at+2]<<8|bytes[at+3])>>>0`
}

const bounds = (index: string, size: number) => `at=${index};if(at+${size}>length)return false;at+=offset;`

/** BPF_ADD to BPF_XOR (linux/bpf_common.h), with A and an operand. */
const arithmetic: Readonly<Record<number, (operand: string) => string>> = {
  0: (operand) => `A=(A+${operand})>>>0`,
  16: (operand) => `A=(A-${operand})>>>0`,
  32: (operand) => `A=Math.imul(A,${operand})>>>0`,
  48: (operand) => `if(${operand}===0)return false;A=(A/${operand})>>>0`,
  64: (operand) => `A=(A|${operand})>>>0`,
  80: (operand) => `A=(A&${operand})>>>0`,
  96: (operand) => `A=${operand}>31?0:(A<<${operand})>>>0`,
  112: (operand) => `A=${operand}>31?0:A>>>${operand}`,
  128: () => 'A=-A>>>0',
  144: (operand) => `if(${operand}===0)return false;A=A%${operand}`,
  160: (operand) => `A=(A^${operand})>>>0`,
}

/** BPF_JEQ, BPF_JGT, BPF_JGE and BPF_JSET. */
const conditions: Readonly<Record<number, (operand: string) => string>> = {
  16: (operand) => `A===${operand}`,
  32: (operand) => `A>${operand}`,
  48: (operand) => `A>=${operand}`,
  64: (operand) => `(A&${operand})!==0`,
}

/** A jump to a return instruction becomes that return: most jumps lead to one. */
function jump(target: number, program: BpfProgram): string {
  const [code, , , k] = program[target] ?? [0x06, 0, 0, 0]
  return code === 0x06 ? `return ${k !== 0}` : `step=${target};continue`
}
