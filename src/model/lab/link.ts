import { type Static, Type } from '@sinclair/typebox'
import { CaptureStart } from '../capture.ts'
import { DirectLink, LinkTraffic } from '../direct-link.ts'
import { changing, maybe, maybes, Name, nullable, Uuid } from '../schema/fields.ts'
import { Filters } from '../schema/filters.ts'
import { FramePath } from '../schema/nio.ts'
import { kept } from './kept.ts'
import { LabLabel } from './node.ts'

const number = (what: string) => Type.Integer({ minimum: 0, maximum: 100_000, description: `Number of the ${what}` })

/** An end of a link: a port of a node. */
export type LabLinkEnd = Static<typeof LabLinkEnd>
export const LabLinkEnd = Type.Object(
  {
    node_id: Uuid,
    adapter_number: number('adapter'),
    port_number: number('port of the adapter'),
    label: Type.Optional(nullable(LabLabel)),
  },
  { $id: 'LabLinkEnd', additionalProperties: false, description: 'An end of a link' },
)

const linkStyle = Type.Record(Type.String({ maxLength: 50 }), Type.Unknown(), { description: 'How the map draws it' })
const suspend = Type.Boolean({
  default: false,
  description: 'true: the link is down; frames are dropped in both directions',
})
const both = {
  name: nullable(Type.String({ ...Name, description: 'Its name, unique in the project (case-insensitive)' })),
  filters: Filters,
  filters_ab: Type.Object(Filters.properties, {
    additionalProperties: false,
    description: 'Impairment of frames from the first end to the second; applied after `filters`',
  }),
  filters_ba: Type.Object(Filters.properties, {
    additionalProperties: false,
    description: 'Impairment of frames from the second end to the first; applied after `filters`',
  }),
  suspend,
  link_style: linkStyle,
}

/** The present state of a link. */
export type LabLinkState = Static<typeof LabLinkState>
export const LabLinkState = Type.Object(
  {
    link_id: Uuid,
    verdict: DirectLink.properties.verdict,
    verdict_reason: nullable(
      Type.String({ description: 'Why no frames pass, and what to do; null if nothing is wrong' }),
    ),
    path: Type.Optional(FramePath),
    traffic_ab: LinkTraffic,
    traffic_ba: LinkTraffic,
  },
  { $id: 'LabLinkState', description: 'The state of a link; also in the event `link.state`' },
)

/** A link of a lab. */
export type LabLink = Static<typeof LabLink>
export const LabLink = Type.Object(
  {
    link_id: Uuid,
    project_id: Uuid,
    link_type: Type.Union([Type.Literal('ethernet'), Type.Literal('serial')]),
    nodes: Type.Array(LabLinkEnd, { description: 'Its two ends' }),
    ...both,
    kept: Type.Optional(kept),
    capturing: Type.Boolean({ changesByItself: true }),
    capture_file_name: changing(nullable(Type.String())),
    capture_file_path: changing(nullable(Type.String())),
    capture_compute_id: changing(nullable(Type.String())),
    verdict: changing(nullable(LabLinkState.properties.verdict)),
    verdict_reason: changing(LabLinkState.properties.verdict_reason),
    path: Type.Optional(changing(FramePath)),
    traffic_ab: changing(nullable(LinkTraffic)),
    traffic_ba: changing(nullable(LinkTraffic)),
  },
  { $id: 'LabLink', description: 'A link between two ports' },
)

const given = { ...maybes(both), kept: maybe(kept) }

/** An endpoint in the input of clients: also as a text, such as `R1:eth0`. */
const LabLinkEndGiven = Type.Union([
  LabLinkEnd,
  Type.String({
    minLength: 3,
    maxLength: 600,
    description: '`node:port`, by their names, such as R1:eth0',
    expects: 'a string node:port, such as R1:eth0',
  }),
])
export type LabLinkCreate = Static<typeof LabLinkCreate>
export const LabLinkCreate = Type.Object(
  {
    link_id: maybe(Uuid),
    nodes: Type.Tuple([LabLinkEndGiven, LabLinkEndGiven], { description: 'The two ends' }),
    ...given,
  },
  { $id: 'LabLinkCreate', additionalProperties: false, description: 'Input of a new link' },
)

export type LabLinkUpdate = Static<typeof LabLinkUpdate>
export const LabLinkUpdate = Type.Object(
  {
    nodes: maybe(Type.Array(LabLinkEnd, { maxItems: 2, description: 'The same ends, with other labels' })),
    ...given,
  },
  {
    $id: 'LabLinkUpdate',
    additionalProperties: false,
    description: 'Changes to a link; null or absent members stay unchanged',
  },
)

export type LabCaptureStart = Static<typeof LabCaptureStart>
export const LabCaptureStart = Type.Object(
  {
    capture_file_name: maybe(CaptureStart.properties.capture_file_name),
    data_link_type: maybe(
      Type.String({ maxLength: 50, description: 'Link type of the frames; default: the type of the line' }),
    ),
  },
  { $id: 'LabCaptureStart', additionalProperties: false, description: 'File and link type of a capture' },
)
