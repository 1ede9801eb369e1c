/** Members of an argument such as `pc,accel=kvm`. A first member without a name has the name ''. */
export type OptionMembers = readonly (readonly [name: string, value: string])[]

/** Parses a comma-separated argument, in which a doubled comma is an escaped one, or JSON (since QEMU 6.2). */
export function membersIn(argument: string): OptionMembers {
  if (argument.startsWith('{')) return membersOfJson(argument)
  return split(argument).map((part, index) => {
    const at = part.indexOf('=')
    // A later member without a value means `=on`.
    if (at < 0) return index === 0 ? ['', part] : [part, 'on']
    return [part.slice(0, at), part.slice(at + 1)]
  })
}

/** Splits at single commas: of a row of commas, pairs are escaped ones, and an odd last one separates. */
const split = (argument: string): string[] =>
  argument.replace(/,,|,/g, (text) => (text === ',' ? '\0' : ',')).split('\0')

function membersOfJson(argument: string): OptionMembers {
  try {
    const value: unknown = JSON.parse(argument)
    return Object.entries(value ?? {}).map(([name, member]) => [name, String(member)])
  } catch {
    // The emulator refuses it.
    return []
  }
}

export const memberOf = (members: OptionMembers, name: string): string | undefined =>
  members.findLast(([known]) => known === name)?.[1]

/** Escapes a value for a comma-separated argument. */
export const escaped = (value: string): string => value.replaceAll(',', ',,')
