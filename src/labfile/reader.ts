import { Kind, type Static, type TObject, type TSchema } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { nearest } from '../lib/text/nearest-word.ts'
import { oursFor } from '../model/validation/foreign-words.ts'
import { expectation, quoteValue } from '../model/validation/validate.ts'
import { type Diagnostics, didYouMean, quoted } from './diagnostics.ts'
import type { MapValue, ScalarValue, Value } from './values.ts'

/**
 * Reads values of the file by schemas, and adds every fault to `diagnostics`, each at its position. A number, true or false where a text
 * is expected is the text that is written. Undefined: the value has a fault.
 */
export class Reader {
  readonly #diagnostics: Diagnostics
  /** Whether an object without its faulty optional members is read nevertheless. */
  #isPartial = false

  constructor(diagnostics: Diagnostics) {
    this.#diagnostics = diagnostics
  }

  read<T extends TSchema>(schema: T, value: Value): Static<T> | undefined {
    const found = this.#value(schema, value)
    return found === wrong ? undefined : (found as Static<T>)
  }

  /**
   * The same, but an optional member with a fault is left out of its object, so that the rest is judged, too. Undefined: a member that must be
   * there has a fault.
   */
  readPartly<T extends TSchema>(schema: T, value: Value): Static<T> | undefined {
    this.#isPartial = true
    try {
      return this.read(schema, value)
    } finally {
      this.#isPartial = false
    }
  }

  /** The same for a member of an object that was read before. */
  member<T extends TSchema>(schema: T, value: Value | undefined): Static<T> | undefined {
    return value === undefined ? undefined : this.read(schema, value)
  }

  #value(schema: TSchema, value: Value): unknown {
    const kind = schema[Kind]
    if (kind === 'Union') return this.#union(schema, value)
    if (kind === 'Object' && value.type === 'map') return this.#object(schema as TObject, value)
    if (kind === 'Record' && value.type === 'map') return this.#record(schema, value)
    if (kind === 'Array' && value.type === 'list')
      return this.#list(schema, value.items, (index) => schema.items[index] ?? schema.items)
    if (kind === 'Tuple' && value.type === 'list' && value.items.length === schema.items.length)
      return this.#list(schema, value.items, (index) => schema.items[index])
    if (value.type === 'scalar' && !isCollection(schema)) return this.#scalar(schema, value)
    return this.#unexpected(schema, value)
  }

  #object(schema: TObject, value: MapValue): unknown {
    const known = Object.keys(schema.properties)
    let isWrong = false
    const members: [string, unknown][] = []
    for (const [name, { key, value: given }] of value.entries) {
      const member = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
      if (member === undefined) {
        isWrong ||= !this.#isPartial
        this.#diagnostics.add({ ...key, path: value.at.path }, `unknown key ${quoted(name)}`, () =>
          didYouMean(name, known),
        )
        continue
      }
      const read = this.#value(member, given)
      if (read === wrong) isWrong ||= !this.#isPartial || schema.required?.includes(name) === true
      else members.push([name, read])
    }
    for (const name of schema.required ?? []) {
      if (value.entries.has(name)) continue
      isWrong = true
      // A misspelt key is reported as an unknown key.
      if ([...value.entries.keys()].some((it) => !known.includes(it) && nearest(it, known) === name)) continue
      this.#diagnostics.add(
        value.at,
        `${quoted(name)} is missing`,
        `expected ${expectation(schema.properties[name] as TSchema)}`,
      )
    }
    return isWrong ? wrong : Object.fromEntries(members)
  }

  #record(schema: TSchema, value: MapValue): unknown {
    const [[pattern, item] = ['', undefined]] = Object.entries(schema.patternProperties as Record<string, TSchema>)
    const key = new RegExp(pattern, 'u')
    let isWrong = false
    const members: [string, unknown][] = []
    for (const [name, entry] of value.entries) {
      if (!key.test(name)) {
        isWrong = true
        this.#diagnostics.add(
          entry.key,
          `${quoted(name)} is not a valid key here`,
          `expected ${schema.keyExpects ?? 'another one'}`,
        )
        continue
      }
      const read = this.#value(item as TSchema, entry.value)
      if (read === wrong) isWrong = true
      else members.push([name, read])
    }
    return isWrong ? wrong : Object.fromEntries(members)
  }

  #list(schema: TSchema, items: readonly Value[], schemaOf: (index: number) => TSchema): unknown {
    const [first] = items
    if (items.length < (schema.minItems ?? 0) || items.length > (schema.maxItems ?? Number.POSITIVE_INFINITY)) {
      if (first !== undefined) this.#diagnostics.add(first.at, `expected ${expectation(schema)}, got ${items.length}`)
      return wrong
    }
    const read = items.map((item, index) => this.#value(schemaOf(index), item))
    return read.includes(wrong) ? wrong : read
  }

  /** Reads by the branch that has the form of the value, so that diagnostics are reported where they are. */
  #union(schema: TSchema, value: Value): unknown {
    const branches = branchesOf(schema)
    const fitting = branches.filter((it) =>
      value.type === 'map'
        ? it[Kind] === 'Object' || it[Kind] === 'Record'
        : value.type === 'list'
          ? it[Kind] === 'Array' || it[Kind] === 'Tuple'
          : !isCollection(it),
    )
    const [only] = fitting
    if (only === undefined) return this.#unexpected(schema, value)
    if (value.type !== 'scalar') {
      const isOfLength = only[Kind] !== 'Tuple' || (value.type === 'list' && value.items.length === only.items.length)
      return isOfLength ? this.#value(only, value) : this.#unexpected(schema, value)
    }
    return this.#scalar(schema, value)
  }

  #scalar(schema: TSchema, value: ScalarValue): unknown {
    if (Check(schema, value.value)) return value.value
    const isText = typeof value.value === 'string' || value.value === null
    if (!isText && Check(schema, value.source)) return value.source
    return this.#unexpected(schema, value)
  }

  #unexpected(schema: TSchema, value: Value): typeof wrong {
    const got =
      value.type === 'map'
        ? 'a map'
        : value.type === 'list'
          ? `a list of ${value.items.length}`
          : value.value === null
            ? 'nothing'
            : typeof value.value === 'string'
              ? quoteValue(value.value, value.at.path)
              : quoted(value.source).slice(1, -1)
    this.#diagnostics.add(value.at, `expected ${expectation(schema)}, got ${got}`, () => hintFor(schema, value))
    return wrong
  }
}

/** A value with a fault. */
const wrong = Symbol('wrong')

const branchesOf = (schema: TSchema): readonly TSchema[] =>
  schema[Kind] === 'Union' ? (schema.anyOf as TSchema[]).flatMap(branchesOf) : [schema]
const isCollection = (schema: TSchema): boolean => ['Object', 'Record', 'Array', 'Tuple'].includes(schema[Kind])

/** How to correct a scalar, where that is clear. */
function hintFor(schema: TSchema, value: Value): string | undefined {
  if (value.type !== 'scalar') return undefined
  const branches = branchesOf(schema)
  const unit = branches.find(({ proposes }) => proposes !== undefined)?.proposes
  const { source } = value
  if (unit !== undefined) {
    const [, number, written] = /^(\d+(?:\.\d+)?)\s*([a-zA-Z/%]*)$/.exec(source) ?? []
    if (number === undefined) return undefined
    const right = written === '' || written === undefined ? unit : unitLike(written, unit)
    return right === undefined ? undefined : `write ${number}${right}`
  }
  const words = branches.flatMap((it) => (it.const === undefined ? [] : [String(it.const)]))
  const known = oursFor(source.toLowerCase())
  const guess = known !== undefined && words.includes(known) ? known : nearest(source, words)
  if (guess !== undefined && source !== '') return `did you mean ${JSON.stringify(guess)}?`
  const kinds = new Set(branches.map((it) => it[Kind]))
  if (kinds.has('String')) return undefined
  if (kinds.has('Integer') || kinds.has('Number')) {
    const [, number] = /^(-?\d+(?:\.\d+)?)\s*[a-zA-Z%]*$/.exec(source) ?? []
    if (number !== undefined && typeof value.value === 'string')
      return source === number
        ? 'write the number without quotes'
        : `write ${number}, without a unit${unitIn(schema, branches)}`
  }
  if (kinds.has('Boolean') && /^(yes|no|on|off|true|false|0|1)$/i.test(source))
    return 'write true or false, without quotes'
  return undefined
}

/** ` (Memory, MB)`: descriptions name the units of numbers. */
function unitIn(schema: TSchema, branches: readonly TSchema[]): string {
  const description = branches.find((it) => it.description !== undefined)?.description ?? schema.description
  return description === undefined ? '' : ` (${description})`
}

/** The unit of the file for one that is written in another way, such as `Mbps`. */
function unitLike(written: string, proposed: string): string | undefined {
  const word = written.toLowerCase()
  const known: Readonly<Record<string, readonly string[]>> = {
    '%': ['%', 'percent'],
    kbit: ['k', 'kbps', 'kbit/s', 'kbit'],
    mbit: ['m', 'mbps', 'mbit/s', 'mbit'],
    gbit: ['g', 'gbps', 'gbit/s', 'gbit'],
    kb: ['k', 'kb', 'kib'],
    us: ['us', 'usec'],
    ms: ['ms', 'msec'],
    s: ['s', 'sec', 'second', 'seconds'],
    m: ['m', 'min', 'minute', 'minutes'],
    h: ['h', 'hour', 'hours'],
  }
  const group = [['%'], ['kbit', 'mbit', 'gbit'], ['kb'], ['us', 'ms', 's', 'm', 'h']].find((it) =>
    it.includes(proposed),
  )
  return group?.find((unit) => known[unit]?.includes(word))
}
