import type { Compile } from './libpcap.ts'
import type { Token } from './tokens.ts'

/** libpcap looks up names after these qualifiers in local tables. After other qualifiers, or without one, it asks the DNS. */
const local = new Set(['port', 'portrange', 'proto', 'protochain'])
const remote = new Set(
  'host net gateway src dst addr1 addr2 addr3 addr4 address1 address2 address3 address4 ra ta'.split(' '),
)
const joints = new Set(['and', 'or', 'not', '&&', '||', '!', '('])

/** DLT_EN10MB. The keywords are the same for every link type. */
const ethernet = 1

/**
 * The first name that libpcap would look up as a host or network, which can block for many seconds. A name without a qualifier has
 * the qualifier of the term before it (`host 10.0.0.1 or gw`); a qualifier inside parentheses ends with them (pcap-filter(7)).
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
 * Whether a word is a name: neither a keyword nor a constant of libpcap. Asks libpcap, because the keywords differ between versions.
 * Neither of the two expressions leads to a look-up of hosts.
 */
function isName(text: string, compile: Compile): boolean {
  if (text.startsWith('\\')) return true
  if ('program' in compile(`less ${text}`, ethernet, false)) return false
  const asPort = compile(`port ${text}`, ethernet, false)
  return 'program' in asPort || !asPort.error.includes('syntax error')
}
