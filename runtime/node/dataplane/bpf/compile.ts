import { badRequest, conflict } from '../../../../src/lib/errors/api-error.ts'
import { checkProgram, maxInstructions } from './check.ts'
import { type Compile, loadLibpcap } from './libpcap.ts'
import { findHostName } from './names.ts'
import { findCulprit } from './position.ts'
import type { BpfProgram } from './program.ts'
import { type Token, tokenize } from './tokens.ts'

/** Limits of an expression: libpcap runs on the event loop, and its time grows faster than the square of the length. */
const maxLength = 4096
const maxTokens = 300

/** Whether expressions can be compiled: libpcap is installed. */
export const bpfAvailable = (): boolean => loadLibpcap() !== undefined

/**
 * Compiles a tcpdump expression for frames of the link type (a DLT_ number; Ethernet is 1). 400 with the fault and its position,
 * 409 without libpcap.
 */
export function compileBpf(expression: string, linkType: number): BpfProgram {
  const tokens = read(expression)
  const compile = loadLibpcap()
  if (compile === undefined)
    throw conflict('Filter expressions need libpcap: install libpcap0.8 (apt install libpcap0.8)')
  const name = findHostName(tokens, compile)
  if (name !== undefined)
    throw badRequest(
      `names of hosts and networks are not looked up, write an address ${positionText(expression, name)}`,
    )
  return translate(expression, tokens, linkType, compile)
}

function read(expression: string): Token[] {
  if (expression.length > maxLength) throw badRequest(`a filter expression has at most ${maxLength} characters`)
  const control = [...expression].findIndex((character) => character < ' ' || character === '\x7f')
  if (control !== -1)
    throw badRequest(`a filter expression holds no control characters: one is character ${control + 1}`)
  const tokens = tokenize(expression)
  if (tokens.length === 0) throw badRequest('a filter expression cannot be empty')
  if (tokens.length > maxTokens) throw badRequest(`a filter expression has at most ${maxTokens} words and signs`)
  return tokens
}

function translate(expression: string, tokens: readonly Token[], linkType: number, compile: Compile): BpfProgram {
  const plain = compile(expression, linkType, false)
  if ('error' in plain)
    throw badRequest(`${plain.error} ${positionText(expression, findCulprit(expression, tokens, linkType, compile))}`)
  // The optimizer of libpcap takes seconds for longer programs.
  if (plain.program.length > maxInstructions)
    throw badRequest(`the filter expression is too complex: it needs more than ${maxInstructions} instructions`)
  const optimized = compile(expression, linkType, true)
  // Faults of the whole expression, such as that it rejects all packets, are reported at its first token.
  if ('error' in optimized) throw badRequest(`${optimized.error} ${positionText(expression, tokens[0])}`)
  try {
    checkProgram(optimized.program)
  } catch (cause) {
    // `protochain` compiles to a loop, which classic BPF of the kernel and our matcher do not allow.
    throw badRequest(`the filter expression cannot be used: ${(cause as Error).message}`, { cause })
  }
  return optimized.program
}

function positionText(expression: string, token: Token | undefined): string {
  const start = token?.start ?? expression.trimEnd().length
  const character = [...expression.slice(0, start)].length + 1
  return `at character ${character} (near ${token === undefined ? 'the end' : `"${token.text}"`})`
}
