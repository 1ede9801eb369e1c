import { v5 } from 'uuid'

/** The namespace of all ids that lab files give (RFC 9562, version 5). Another namespace would make a second lab of each known file. */
const namespace = '5b1fcb4e-7a3d-5c0a-9f5e-2f6c1d0b8a47'

/** The id of the project of a lab. */
export const projectIdOf = (lab: string): string => v5(lab, namespace)

/** The id of a new node or segment. Case of the name does not count. */
export const nodeIdOf = (lab: string, name: string): string => v5(`${lab}/${name.toLowerCase()}`, namespace)

/** A port of a link whose ports are all known. */
export interface LinkNodePort {
  readonly node: string
  readonly adapter_number: number
  readonly port_number: number
}

/** The id of a new link: by its name, or by its ends in any order. */
export function linkIdOf(lab: string, link: string | readonly [LinkNodePort, LinkNodePort]): string {
  if (typeof link === 'string') return v5(`${lab}/#${link.toLowerCase()}`, namespace)
  const ends = link.map((end) => `${end.node.toLowerCase()}:${end.adapter_number}/${end.port_number}`)
  return v5(`${lab}#${ends.sort().join('--')}`, namespace)
}
