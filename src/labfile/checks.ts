import type { Static } from '@sinclair/typebox'
import { kindOf } from '../model/kinds/node.ts'
import type { LabCheck, PlainCheck } from '../model/lab/task.ts'
import type { DesiredCheck, DesiredNode } from './desired.ts'
import { type Diagnostics, didYouMean, quoted } from './diagnostics.ts'
import type { Contents } from './files.ts'
import { namesOf } from './links.ts'
import { requireExpression, seconds } from './ready.ts'
import type { CheckMap } from './schema.ts'
import { at, type Value } from './values.ts'

/** What checks name. */
export interface CheckNames {
  /** By name in lower case; a node with a fault is undefined. */
  readonly nodes: ReadonlyMap<string, { readonly name: string; readonly node?: DesiredNode }>
  /** Names of links by these names in lower case. */
  readonly links: ReadonlyMap<string, string>
  readonly contents: Contents
  readonly diagnostics: Diagnostics
  /** Whether a member of the check has a fault already: a member that is missing then is none. */
  readonly isPartial?: boolean
}

type Inner = Omit<Static<typeof CheckMap>, 'not'>

/** The normal form of a check. Undefined when it has a fault. */
export function readCheck(given: CheckMap, value: Value, names: CheckNames): DesiredCheck | undefined {
  const { not, ...own } = given
  if (not === undefined) return readInner(own, value, names, 30)
  const others = Object.keys(own).filter((key) => key !== 'name')
  if (others.length > 0)
    names.diagnostics.add(value.at, `not cannot be combined with ${others[0]}`, `write ${others[0]} inside not`)
  const inner = readInner(not, at(value, 'not') ?? value, names, 5)
  if (inner === undefined) return undefined
  const { at: _, ...of } = inner
  return { name: own.name ?? derivedName({ check: 'not', of }), within_s: of.within_s, at: value.at, check: 'not', of }
}

const forms = {
  ping: ['from', 'ping'],
  console: ['on', 'type', 'expect'],
  link: ['link', 'verdict'],
} as const satisfies Record<string, readonly (keyof Inner)[]>

function readInner(
  given: Inner,
  value: Value,
  names: CheckNames,
  byDefault: number,
): (PlainCheck & Pick<DesiredCheck, 'at'>) | undefined {
  const { diagnostics, isPartial = false } = names
  const positionOf = (key: string) => at(value, key)?.at ?? value.at
  const keys = Object.keys(given)
  const form = (Object.keys(forms) as (keyof typeof forms)[]).find((word) =>
    forms[word].some((key) => keys.includes(key)),
  )
  if (form === undefined) {
    if (!isPartial)
      diagnostics.add(
        value.at,
        'this is not a check',
        'a check has from and ping; on, type and expect; link and verdict; or not',
      )
    return undefined
  }
  const wanted: readonly string[] = forms[form]
  const missing = wanted.find((key) => !keys.includes(key))
  const other = keys.find((key) => !wanted.includes(key) && key !== 'name' && key !== 'within')
  if (missing !== undefined && !isPartial)
    diagnostics.add(value.at, `${quoted(missing)} is missing`, `this check has ${wanted.join(', ')}`)
  if (other !== undefined)
    diagnostics.add(positionOf(other), `${other} belongs to another type of check`, `this one has ${wanted.join(', ')}`)
  const within_s = seconds(given.within, 'within', positionOf, diagnostics) ?? byDefault
  const base = { within_s, at: value.at }
  const { name, from, ping, on, type = '', expect, link, verdict = 'ok' } = given
  if (form === 'ping') {
    const source = from === undefined ? undefined : find(from, positionOf('from'), names)
    if (source !== undefined && kindOf(source.kind).canPing !== true)
      diagnostics.add(
        positionOf('from'),
        `${quoted(source.name)} is not a pc`,
        'only a pc can ping; use on, type and expect for other nodes',
      )
    const address = ping === undefined ? undefined : addressOf(ping, positionOf('ping'), names)
    if (source === undefined || ping === undefined || address === undefined) return undefined
    return {
      ...base,
      check: 'ping',
      name: name ?? `${source.name} pings ${ping}`,
      from: source.name,
      to: ping,
      address,
    }
  }
  if (form === 'console') {
    const node = on === undefined ? undefined : find(on, positionOf('on'), names)
    if (expect !== undefined) requireExpression(expect, positionOf('expect'), diagnostics)
    if (node?.segment !== undefined) diagnostics.add(positionOf('on'), `${quoted(node.name)} has no console`)
    if (node === undefined || expect === undefined || missing !== undefined) return undefined
    const check = { check: 'console', on: node.name, type, expect } as const
    return { ...base, ...check, name: name ?? derivedName(check) }
  }
  if (link === undefined) return undefined
  const found = names.links.get(link.toLowerCase())
  if (found === undefined) {
    const hint = () => didYouMean(link, [...names.links.values()]) ?? 'give a link a name'
    diagnostics.add(positionOf('link'), `there is no link ${quoted(link)}`, hint)
    return undefined
  }
  if (missing !== undefined) return undefined
  const check = { check: 'link', link: found, verdict } as const
  return { ...base, ...check, name: name ?? derivedName(check) }
}

/** The name of a check without one. */
export function derivedName(check: Nameless): string {
  switch (check.check) {
    case 'ping':
      return `${check.from} pings ${check.to}`
    case 'console':
      return `${check.on}: ${check.type}`
    case 'link':
      return `${check.link} is ${check.verdict}`
    case 'not':
      return `not: ${check.of.name}`
  }
}

type WithoutBase<T> = T extends unknown ? Omit<T, 'name' | 'within_s'> : never
type Nameless = WithoutBase<LabCheck>

function find(name: string, where: DesiredCheck['at'], { nodes, diagnostics }: CheckNames): DesiredNode | undefined {
  const found = nodes.get(name.toLowerCase())
  if (found === undefined)
    diagnostics.add(where, `there is no node ${quoted(name)}`, () => didYouMean(name, namesOf(nodes)))
  return found?.node
}

/** The address of a ping: the given one, or that of a pc. */
function addressOf(word: string, where: DesiredCheck['at'], names: CheckNames): string | undefined {
  const { nodes, diagnostics, contents } = names
  const found = nodes.get(word.toLowerCase())
  if (found === undefined) {
    if (isAddress(word)) return word
    diagnostics.add(where, `${quoted(word)} is neither a node nor an address`, () => didYouMean(word, namesOf(nodes)))
    return undefined
  }
  const { node } = found
  if (node === undefined) return undefined
  const script = kindOf(node.kind).canPing === true ? node.configs.startup : undefined
  const address = addressIn(script?.text)
  if (address !== undefined) return address
  if (script !== undefined && !contents.has(script)) return ''
  diagnostics.add(where, `${quoted(node.name)} is not a pc with an address in its config`, 'write the address')
  return undefined
}

/** The first address in the startup script of a pc. */
export function addressIn(script: string | undefined): string | undefined {
  const address = script?.match(/^[ \t]*ip[ \t]+([0-9a-f:.]*[.:][0-9a-f:.]*)/im)?.[1]
  return address !== undefined && isAddress(address) ? address : undefined
}

const isAddress = (word: string): boolean =>
  /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/.test(word) ||
  /^(?=.*:)[0-9a-f:]+(?:\d+(?:\.\d+){3})?$/i.test(word)

/** A check with other names of nodes. A name that it has from its nodes follows. */
export function checkWithNames<T extends LabCheck>(check: T, of: (name: string) => string): T {
  const renamed = withOtherNodes(check, of)
  return check.name === derivedName(check) ? { ...renamed, name: derivedName(renamed) } : renamed
}

function withOtherNodes<T extends LabCheck>(check: T, of: (name: string) => string): T {
  if (check.check === 'not') return { ...check, of: checkWithNames(check.of, of) }
  if (check.check === 'ping') return { ...check, from: of(check.from), to: of(check.to) }
  return check.check === 'console' ? { ...check, on: of(check.on) } : check
}
