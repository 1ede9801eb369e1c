import type { Compile } from './libpcap.ts'
import type { Token } from './tokens.ts'

/** What can come next, so that there is one of them for every place at which an expression may be cut. */
const operands = ['', '1', 'tcp', '255.255.255.255', '[0]', '32', '128', '::1', '0:0:0:0:0:1', 'port 1', 'proto 1']
const directed = ['dst', 'src'].flatMap((way) =>
  ['255.255.255.255', 'port 1', '::1', '0:0:0:0:0:1'].map((operand) => `${way} ${operand}`),
)
const continuations = [...operands, ...directed]

/** Before an opening parenthesis, these say that it is one of arithmetic. */
const operators = new Set('+ - * / % & | ^ << >> < > <= >= = == != [ :'.split(' '))

/** A term that every version refuses once it has understood all that stands before it, and so without generating code. */
const refused = 'port 4000000007'

/**
 * The first token that cannot be part of any valid expression that begins like this one, or undefined when only
 * something at the end is missing. libpcap tells no position, but what can be continued it reads to the end.
 */
export function findCulprit(
  expression: string,
  tokens: readonly Token[],
  linkType: number,
  compile: Compile,
): Token | undefined {
  const words = errorOf(compile(`less 1 and ${refused}`, linkType, false))
  const isViable = (count: number): boolean => {
    const prefix = expression.slice(0, tokens[count - 1]?.end ?? 0)
    const read = tokens.slice(0, count)
    return completions(read).some(
      (rest) => errorOf(compile(`${prefix} ${rest} and ${refused}`, linkType, false)) === words,
    )
  }
  // A prefix of what can be continued can be continued: the longest such one is found by halving.
  let viable = 0
  let hopeless = tokens.length + 1
  while (hopeless - viable > 1) {
    const middle = (viable + hopeless) >> 1
    if (isViable(middle)) viable = middle
    else hopeless = middle
  }
  return tokens[hopeless - 1]
}

const errorOf = (compiled: ReturnType<Compile>) => ('error' in compiled ? compiled.error : undefined)

function completions(tokens: readonly Token[]): string[] {
  const { arithmetic, logical } = closers(tokens)
  return continuations.flatMap((operand) =>
    // With and without a comparison, which a value needs in order to be a condition.
    ['', '= 0'].map((comparison) => [operand, arithmetic, comparison, logical].join(' ')),
  )
}

/** What closes everything that is open: first what has to be closed for a value to be complete, then the rest. */
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
