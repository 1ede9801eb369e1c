import type { Compile } from './libpcap.ts'
import type { Token } from './tokens.ts'

/** Continuations: wherever a valid expression is cut, one of these can follow. */
const operands = ['', '1', 'tcp', '255.255.255.255', '[0]', '32', '128', '::1', '0:0:0:0:0:1', 'port 1', 'proto 1']
const directed = ['dst', 'src'].flatMap((way) =>
  ['255.255.255.255', 'port 1', '::1', '0:0:0:0:0:1'].map((operand) => `${way} ${operand}`),
)
const continuations = [...operands, ...directed]

/** A parenthesis after one of these belongs to arithmetic. */
const operators = new Set('+ - * / % & | ^ << >> < > <= >= = == != [ :'.split(' '))

/** A term that every version of libpcap refuses, after it has parsed the expression before, and without generating code. */
const refused = 'port 4000000007'

/**
 * The first token that no valid expression with the same beginning contains; undefined when only the end is missing. libpcap reports
 * no position, but it reads a beginning to its end if a continuation exists.
 */
export function findCulprit(
  expression: string,
  tokens: readonly Token[],
  linkType: number,
  compile: Compile,
): Token | undefined {
  const errorOf = (text: string) => {
    const compiled = compile(`${text} and ${refused}`, linkType, false)
    return 'error' in compiled ? compiled.error : undefined
  }
  const expected = errorOf('less 1')
  const isViable = (count: number): boolean => {
    const prefix = expression.slice(0, tokens[count - 1]?.end ?? 0)
    return completions(tokens.slice(0, count)).some((rest) => errorOf(`${prefix} ${rest}`) === expected)
  }
  // Every prefix of a viable beginning is viable, so a binary search finds the longest one.
  let viable = 0
  let hopeless = tokens.length + 1
  while (hopeless - viable > 1) {
    const middle = (viable + hopeless) >> 1
    if (isViable(middle)) viable = middle
    else hopeless = middle
  }
  return tokens[hopeless - 1]
}

function completions(tokens: readonly Token[]): string[] {
  const { arithmetic, logical } = closers(tokens)
  return continuations.flatMap((operand) =>
    // With and without a comparison: a value is a condition only with one.
    ['', '= 0'].map((comparison) => [operand, arithmetic, comparison, logical].join(' ')),
  )
}

/** The closing brackets of all open brackets: first those that complete a value, then the others. */
function closers(tokens: readonly Token[]): { readonly arithmetic: string; readonly logical: string } {
  const open: { readonly closer: string; readonly isArithmetic: boolean }[] = []
  let before = ''
  for (const { text } of tokens) {
    if (text === '[') open.push({ closer: ']', isArithmetic: true })
    else if (text === '(') {
      const isArithmetic = operators.has(before) || (before === '(' && (open.at(-1)?.isArithmetic ?? false))
      open.push({ closer: ')', isArithmetic })
    } else if (text === ')' || text === ']') open.pop()
    before = text
  }
  open.reverse()
  const first = open.findIndex(({ isArithmetic }) => !isArithmetic)
  const split = first === -1 ? open.length : first
  const close = (these: typeof open) => these.map(({ closer }) => closer).join(' ')
  return { arithmetic: close(open.slice(0, split)), logical: close(open.slice(split)) }
}
