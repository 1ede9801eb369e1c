import { isIPv6 } from 'node:net'

/** A piece of an expression, as libpcap's scanner cuts it. */
export interface Token {
  /** `name`: neither a number nor an address; includes keywords. */
  readonly kind: 'name' | 'number' | 'address' | 'symbol'
  readonly text: string
  /** Where it starts in the expression. */
  readonly start: number
  readonly end: number
}

const hex = '[0-9A-Fa-f]'
const byte = `${hex}{1,2}`
const number = '(?:0[xX][0-9A-Fa-f]+|[0-9]+)'

const space = / +/y
const mac = new RegExp(
  `${byte}(?::${byte}){5}|${byte}(?:-${byte}){5}|${byte}(?:\\.${byte}){5}|${hex}{4}(?:\\.${hex}{4}){2}|${hex}{12}`,
  'y',
)
/** A malformed hardware address, for which libpcap has a separate error. */
const brokenMac = new RegExp(`${byte}:+(?:${byte}:+)+`, 'y')
const colons = /[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*/y
const word = /[A-Za-z0-9](?:[-_.A-Za-z0-9]*[.A-Za-z0-9])?/y
const arcnet = new RegExp(`\\$${byte}`, 'y')
const escaped = /\\[^ !()\n\t]+/y
const symbol = />=|<=|!=|==|<<|>>|&&|\|\||./suy

const isNumber = new RegExp(`^${number}$`)
const isDotted = new RegExp(`^${number}(?:\\.${number}){1,3}$`)
/** The longest text of an IPv6 address. */
const ipv6Length = 45

/**
 * Cuts an expression into tokens as libpcap does: the longest match wins. `findHostName` relies on it: a name that was taken for an
 * address would reach the DNS.
 */
export function tokenize(expression: string): Token[] {
  const tokens: Token[] = []
  for (let at = skipSpace(expression, 0); at < expression.length; ) {
    const token = next(expression, at)
    tokens.push(token)
    at = skipSpace(expression, token.end)
  }
  return tokens
}

const skipSpace = (expression: string, at: number): number => at + (match(space, expression, at)?.length ?? 0)

function next(expression: string, start: number): Token {
  const named = match(escaped, expression, start) ?? match(word, expression, start) ?? ''
  const address = longest(
    match(mac, expression, start),
    match(brokenMac, expression, start),
    match(arcnet, expression, start),
    ipv6(expression, start),
  )
  const token = (kind: Token['kind'], text: string): Token => ({ kind, text, start, end: start + text.length })
  if (address !== '' && address.length >= named.length) return token('address', address)
  if (isNumber.test(named)) return token('number', named)
  if (isDotted.test(named)) return token('address', named)
  if (named !== '') return token('name', named)
  return token('symbol', match(symbol, expression, start) ?? '')
}

function ipv6(expression: string, start: number): string | undefined {
  const run = match(colons, expression, start)?.slice(0, ipv6Length)
  for (let length = run?.length ?? 0; length > 1; length--) {
    const text = run?.slice(0, length)
    if (text !== undefined && isIPv6(text)) return text
  }
  return undefined
}

const longest = (...texts: readonly (string | undefined)[]) =>
  texts.reduce<string>((best, text = '') => (text.length > best.length ? text : best), '')

function match(pattern: RegExp, expression: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(expression)?.[0]
}
