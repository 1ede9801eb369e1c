/** Members of an argument such as `pc,accel=kvm`; the first may have no name and then has the name ''. */
export type Members = readonly (readonly [name: string, value: string])[]

/** Reads a comma-separated argument, in which a doubled comma is one of a value, or the JSON that newer versions take. */
export function membersIn(argument: string): Members {
  if (argument.startsWith('{')) return membersOfJson(argument)
  return cut(argument).map((part, index) => {
    const at = part.indexOf('=')
    // A later member without a value switches itself on.
    if (at < 0) return index === 0 ? ['', part] : [part, 'on']
    return [part.slice(0, at), part.slice(at + 1)]
  })
}

function cut(argument: string): string[] {
  const parts = ['']
  for (let index = 0; index < argument.length; index++) {
    const char = argument[index] ?? ''
    if (char !== ',') parts[parts.length - 1] += char
    else if (argument[index + 1] === ',') {
      parts[parts.length - 1] += ','
      index++
    } else parts.push('')
  }
  return parts
}

function membersOfJson(argument: string): Members {
  try {
    const value: unknown = JSON.parse(argument)
    return Object.entries(value ?? {}).map(([name, member]) => [name, String(member)])
  } catch {
    // The emulator will refuse it.
    return []
  }
}

export const memberOf = (members: Members, name: string): string | undefined =>
  members.findLast(([known]) => known === name)?.[1]

/** A value inside a comma-separated argument: a comma of it is doubled. */
export const escaped = (value: string): string => value.replaceAll(',', ',,')
