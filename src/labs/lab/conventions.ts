import type { FreeName } from '../../model/lab/names.ts'
import type { LabTemplate } from '../../model/lab/template.ts'

type Members = Readonly<Record<string, unknown>>

/** What clients of another program expect of labs, where it differs from this program. */
export interface Conventions {
  /** The name of a new or renamed node. */
  readonly nodeName: FreeName
  /** The name of an imported or copied lab. */
  readonly labName: FreeName
  /** The settings of a new node of a template, from those of the template that its kind has. */
  templateSettings(template: LabTemplate, settings: Members): Members
  /** Whether nodes of this kind run from their creation on: a request to stop them does nothing. */
  runsAlways(kind: string): boolean
  /** A create with the id of a node or a drawing that is there answers with that one; else it is 409. */
  readonly showsExisting: boolean
  /** Whether two ports of one node can be linked. */
  readonly linksNodeToItself: boolean
}
