/** The name of a node as the name of a host (RFC 1123). */
export const hostnameOf = (name: string): string =>
  name
    .replace(/[^A-Za-z0-9-]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 63)
    // Last, as what was cut off may leave one at the end.
    .replace(/-+$/, '') || 'node'
