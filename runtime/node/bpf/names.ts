import type { Compile } from './libpcap.ts'
import type { Token } from './tokens.ts'

/** Names after these are looked up in a local table; after the other qualifiers, or none of them, libpcap asks the DNS. */
const local = new Set(['port', 'portrange', 'proto', 'protochain'])
const remote = new Set(
  'host net gateway src dst addr1 addr2 addr3 addr4 address1 address2 address3 address4 ra ta'.split(' '),
)
const joints = new Set(['and', 'or', 'not', '&&', '||', '!', '('])

/** DLT_EN10MB; what is a keyword does not depend on the link type. */
const ethernet = 1

/**
 * The first name that libpcap would look up as a host or network, which can block for many seconds. A name without a
 * qualifier has that of the term before it (`host 10.0.0.1 or gw`), except that those within parentheses end with them.
 */
export function findHostName(tokens: readonly Token[], compile: Compile): Token | undefined {
  const outer: string[] = []
  let qualifier = ''
  let before = ''
  for (const token of tokens) {
    const { kind, text } = token
    if (text === '(') outer.push(qualifier)
    else if (text === ')') qualifier = outer.pop() ?? qualifier
    else if (local.has(text) || remote.has(text)) qualifier = text
    else if (kind === 'name' && remote.has(qualifier) && (joints.has(before) || remote.has(before))) {
      if (!joints.has(text) && isName(text, compile)) return token
    }
    before = text
  }
  return undefined
}

/**
 * Asks libpcap whether it has the word as a keyword or a constant: its keywords differ between versions, and one that it
 * does not know is the name of a host. Neither question can lead to a look-up of hosts.
 */
function isName(text: string, compile: Compile): boolean {
  if (text.startsWith('\\')) return true
  if ('program' in compile(`less ${text}`, ethernet, false)) return false
  const asPort = compile(`port ${text}`, ethernet, false)
  return 'program' in asPort || !asPort.error.includes('syntax error')
}
