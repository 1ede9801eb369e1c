/** The console that an SSH client asks for. */
export interface ConsoleName {
  /** Absent: `default`. */
  readonly organization?: string
  readonly lab: string
  readonly node: string
}

/**
 * The console that the user name of an SSH client means: LAB/NODE by names or ids, in an organization /ORGANIZATION/LAB/NODE. A slash
 * or a percent sign in a name is percent-encoded, and other characters may be. Undefined for other names.
 */
export function consoleOfUser(user: string): ConsoleName | undefined {
  const isOfOrganization = user.startsWith('/')
  const parts = user
    .split('/')
    .slice(isOfOrganization ? 1 : 0)
    .map(decoded)
  if (parts.length !== (isOfOrganization ? 3 : 2) || parts.includes('')) return undefined
  const [lab = '', node = ''] = parts.slice(-2)
  return isOfOrganization ? { organization: parts[0] ?? '', lab, node } : { lab, node }
}

/** A name without its percent-encoding; as it is where that is none. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
