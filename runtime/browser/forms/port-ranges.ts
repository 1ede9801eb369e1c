/** A port of a switch, as its settings have it. */
export interface RangedPort {
  readonly port_number: number
  readonly name?: string
  readonly type?: string
  readonly vlan?: number
  readonly ethertype?: string
}

/** A row of the table of ports: ports with equal settings, as texts that are being typed. */
export interface PortRow {
  /** Such as `e0-e3, e7`. */
  readonly ports: string
  readonly mode: string
  readonly vlan: string
  readonly ethertype: string
  /** A name of its own that the only port of the row has. */
  readonly name: string
}

/** A VLAN that ports have by default. */
const usualVlan = 1
const usualName = (port: number): string => `Ethernet${port}`

/** The rows for ports: neighbours with equal settings are one. */
export function rowsOf(ports: readonly RangedPort[]): PortRow[] {
  const groups = new Map<string, { row: Omit<PortRow, 'ports'>; numbers: number[] }>()
  for (const { port_number, name, type = 'access', vlan = usualVlan, ethertype = '' } of ports) {
    const own = name === undefined || name === usualName(port_number) ? '' : name
    const row = { mode: type, vlan: String(vlan), ethertype, name: own }
    const key = JSON.stringify(own === '' ? row : [row, port_number])
    const group = groups.get(key) ?? { row, numbers: [] }
    group.numbers.push(port_number)
    groups.set(key, group)
  }
  return [...groups.values()].map(({ row, numbers }) => ({ ...row, ports: rangesText(numbers) }))
}

/** `e0-e3, e7` for 0, 1, 2, 3 and 7. */
function rangesText(numbers: readonly number[]): string {
  const ranges: [number, number][] = []
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last?.[1] === number - 1) last[1] = number
    else ranges.push([number, number])
  }
  return ranges.map(([first, last]) => (first === last ? `e${first}` : `e${first}-e${last}`)).join(', ')
}

/** Most ports of a switch. */
const maxPorts = 1024
const range = /^(?:e|ethernet)?\s*(\d+)(?:\s*(?:-|–|to)\s*(?:e|ethernet)?\s*(\d+))?$/i

/** The numbers of `e0-e3, e7`. Throws an Error that says what is wrong. */
function numbersOf(text: string): number[] {
  const parts = text.split(',').map((part) => part.trim())
  return parts.flatMap((part) => {
    const [, from, to = from] = range.exec(part) ?? []
    if (from === undefined) throw new Error(`Ports: expected ports such as e0-e3 or e7, not "${part}"`)
    const [first, last] = [Number(from), Number(to)]
    if (last < first) throw new Error(`Ports: ${part} ends before it begins`)
    if (last >= maxPorts)
      throw new Error(`Ports: e${last}: a switch has at most ${maxPorts} ports, e0 to e${maxPorts - 1}`)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}

/** The ports of rows, in order. Throws an Error that says what is wrong. */
export function portsOf(rows: readonly PortRow[]): RangedPort[] {
  const ports = rows.flatMap(({ ports: text, mode, vlan, ethertype, name }) =>
    numbersOf(text).map((port_number, index) => {
      const number = Number(vlan)
      if (vlan.trim() === '' || !Number.isInteger(number)) throw new Error(`Ports: ${text}: expected a VLAN such as 10`)
      const shown = name === '' || index > 0 ? usualName(port_number) : name
      return { port_number, name: shown, type: mode, vlan: number, ethertype: mode === 'qinq' ? ethertype : '' }
    }),
  )
  const seen = new Set<number>()
  for (const { port_number } of ports) {
    if (seen.has(port_number)) throw new Error(`Ports: e${port_number} is in two rows`)
    seen.add(port_number)
  }
  return ports.toSorted((a, b) => a.port_number - b.port_number)
}

/** An empty row for the end of the table. */
export const newPortRow: PortRow = { ports: '', mode: 'access', vlan: String(usualVlan), ethertype: '', name: '' }

/** The rows in which the ports of one are in no other row. Those that lose all of theirs go. */
export function withOwnPorts(rows: readonly PortRow[], owner: PortRow): PortRow[] {
  const taken = new Set(typedNumbers(owner.ports))
  return rows.flatMap((row) => {
    const before = row === owner ? [] : typedNumbers(row.ports)
    const left = before.filter((number) => !taken.has(number))
    if (left.length === before.length) return row
    return left.length === 0 ? [] : { ...row, ports: rangesText(left) }
  })
}

/** The numbers of a text that is being typed: what is wrong with it is said when the form is saved. */
function typedNumbers(text: string): number[] {
  try {
    return numbersOf(text)
  } catch {
    return []
  }
}
