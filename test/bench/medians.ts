export const at = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN

/** What a quarter of the values are below: of times that other work of the machine can only make longer. */
export const lowerQuartile = (values: readonly number[]): number => at(values, 0.25)

export const median = (values: readonly number[]): number => at(values, 0.5)

/** Of what the pairs of one round differ by: a slow moment of the machine hits both. */
export const medianDifference = (ours: readonly number[], theirs: readonly number[]): number =>
  median(ours.map((value, round) => value - (theirs[round] ?? Number.NaN)))

export const ms = (value: number): string => `${Math.abs(value) < 10 ? value.toFixed(1) : value.toFixed(0)} ms`

export const precise = (value: number): string =>
  value < 0.1 ? `${(value * 1000).toFixed(1)} us` : `${value.toFixed(2)} ms`

export const ratio = (value: number, base: number): string => `${(value / base).toFixed(2)} x`

/** Whether a figure is what is wanted of it, for the end of a row. */
export const target = (isMet: boolean, wanted: string): string =>
  `${isMet ? 'meets' : 'MISSES'} the target of ${wanted}`

export const added = (value: number): string => `${value < 0 ? '' : '+'}${ms(value)}`
