/** The console that an SSH client asks for. */
export interface ConsoleName {
  /** Absent: `default`. */
  readonly organization?: string
  readonly lab: string
  readonly node: string
  /** Another console of the node; absent: the first one. */
  readonly console?: string
}

/**
 * The console that the user name of an SSH client means: LAB/NODE by names or ids, or LAB/NODE/CONSOLE; in an organization after
 * /ORGANIZATION/. A slash or a percent sign in a name is percent-encoded, and other characters may be. Undefined for other names.
 */
export function consoleOfUser(user: string): ConsoleName | undefined {
  const isOfOrganization = user.startsWith('/')
  const parts = user
    .split('/')
    .slice(isOfOrganization ? 1 : 0)
    .map(decoded)
  const organization = isOfOrganization ? parts.shift() : undefined
  const [lab, node, console, ...more] = parts
  if (lab === undefined || node === undefined || more.length > 0 || [organization, ...parts].includes(''))
    return undefined
  return { lab, node, ...(organization !== undefined && { organization }), ...(console !== undefined && { console }) }
}

/** A name without its percent-encoding; as it is where that is none. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
