/** A line of figures, with its labels as they were before they were escaped. */
interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A family as a scraper sees it. */
export interface Family {
  readonly help: string
  readonly type: string
  readonly samples: Sample[]
}

const names = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const helpLine = new RegExp(`^# HELP (${names}) ((?:[^\\\\]|\\\\\\\\|\\\\n)*)$`)
const typeLine = new RegExp(`^# TYPE (${names}) (counter|gauge|histogram)$`)
const label = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\]|\\\\["\\\\n])*"'
const sampleLine = new RegExp(
  `^(${names})(?:\\{(${label}(?:,${label})*)\\})? ([+-]Inf|NaN|-?\\d+(?:\\.\\d+)?(?:e[+-]\\d+)?)$`,
)

/** Reads the text format 0.0.4 line by line; throws for what its grammar, or a scraper, does not take. */
export function parseExposition(text: string): Map<string, Family> {
  const families = new Map<string, Family>()
  if (text === '') return families
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const seen = new Set<string>()
  let help: readonly [name: string, text: string] | undefined
  let current: readonly [name: string, family: Family] | undefined
  for (const line of text.slice(0, -1).split('\n')) {
    const [, helpName, helpText] = helpLine.exec(line) ?? []
    const [, typeName, type] = typeLine.exec(line) ?? []
    if (helpName !== undefined && helpText !== undefined) {
      if (families.has(helpName)) throw new Error(`a second block: ${line}`)
      help = [helpName, unescaped(helpText)]
    } else if (typeName !== undefined && type !== undefined) {
      if (help?.[0] !== typeName) throw new Error(`no help before: ${line}`)
      current = [typeName, { help: help[1], type, samples: [] }]
      families.set(...current)
    } else {
      const sample = readSample(line)
      if (current === undefined || !isOf(sample.name, ...current)) throw new Error(`not of this block: ${line}`)
      const series = `${sample.name}${JSON.stringify(Object.entries(sample.labels).sort())}`
      if (seen.has(series)) throw new Error(`a second figure: ${line}`)
      seen.add(series)
      current[1].samples.push(sample)
    }
  }
  return families
}

function readSample(line: string): Sample {
  const [, name, labels, value] = sampleLine.exec(line) ?? []
  if (name === undefined || value === undefined) throw new Error(`not a line of the format: ${line}`)
  const pairs = [...(labels ?? '').matchAll(new RegExp(label, 'g'))].map(([pair]) => {
    const end = pair.indexOf('=')
    return [pair.slice(0, end), unescaped(pair.slice(end + 2, -1))] as const
  })
  if (new Set(pairs.map(([it]) => it)).size !== pairs.length) throw new Error(`a label twice: ${line}`)
  return { name, labels: Object.fromEntries(pairs), value: Number(value.replace('Inf', 'Infinity')) }
}

const isOf = (sample: string, family: string, { type }: Family): boolean =>
  type === 'histogram' ? ['_bucket', '_sum', '_count'].some((suffix) => sample === family + suffix) : sample === family

const unescaped = (text: string): string => text.replace(/\\(.)/g, (_, it: string) => (it === 'n' ? '\n' : it))

/** The figure with exactly these labels; 0 when nothing was counted under them. */
export function figure(families: Map<string, Family>, name: string, labels: Record<string, string> = {}): number {
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''))
  if (family === undefined) throw new Error(`no ${name} in ${[...families.keys()].join(', ')}`)
  const wanted = JSON.stringify(Object.entries(labels).sort())
  return (
    family.samples.find((it) => it.name === name && JSON.stringify(Object.entries(it.labels).sort()) === wanted)
      ?.value ?? 0
  )
}
