import { Type } from '@sinclair/typebox'

/** The units of a lab file, each with its factor to the unit of the model: ms, percent, kbit/s, KB. */
const units = {
  time: { h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 0.001 },
  share: { '%': 1 },
  rate: { gbit: 1_000_000, mbit: 1000, kbit: 1 },
  size: { kb: 1 },
} as const
export type Dimension = keyof typeof units

const examples: Readonly<Record<Dimension, string>> = {
  time: 'a time such as 20ms, 5s or 2m',
  share: 'a share such as 0.5%',
  rate: 'a rate such as 10mbit',
  size: 'a size such as 16kb',
}

const number = '\\d{1,12}(?:\\.\\d{1,12})?'
const patternOf = (dimension: Dimension): string => `^(${number})(${Object.keys(units[dimension]).join('|')})$`

/** A quantity with its unit, without a blank in between. `proposes` is the unit for a message about a number without one. */
export const quantity = (dimension: Dimension, description: string, proposes: string) =>
  Type.String({ pattern: patternOf(dimension), expects: examples[dimension], description, proposes })

/** The same, where 0 turns something off. */
export const quantityOrZero = (dimension: Dimension, description: string, proposes: string) =>
  Type.Union([quantity(dimension, description, proposes), Type.Literal(0)], {
    expects: `${examples[dimension]}, or 0`,
    description,
    proposes,
  })

/** The number in the unit of the model, of a text that fits `quantity`, or of 0. */
export function amountOf(dimension: Dimension, text: string | 0): number {
  if (text === 0) return 0
  const [, count = '', unit = ''] = new RegExp(patternOf(dimension)).exec(text) ?? []
  const factors: Readonly<Record<string, number>> = units[dimension]
  return rounded(Number(count) * (factors[unit] ?? 1))
}

/** Without what floating point adds: 1.005 s are 1005 ms. */
export const rounded = (amount: number): number => Number(amount.toPrecision(12))

/** A number in the unit of the model as a text: in the largest unit that needs no decimals. */
export function quantityText(dimension: Dimension, amount: number): string {
  const all = Object.entries(units[dimension])
  const whole = amount === 0 ? undefined : all.find(([, factor]) => Number.isInteger(rounded(amount / factor)))
  const [unit = '', factor = 1] = whole ?? all.at(-1) ?? []
  return `${decimal(rounded(amount / factor))}${unit}`
}

/** Without an exponent. */
const decimal = (amount: number): string =>
  /e/.test(String(amount)) ? amount.toFixed(12).replace(/\.?0+$/, '') : String(amount)
