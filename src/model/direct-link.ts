import { type Static, Type } from '@sinclair/typebox'
import { LinkEnd } from './link.ts'
import { closedSchema, maybes, nullable, objectSchema, oneOf, Uuid } from './schema/fields.ts'
import { Filters } from './schema/filters.ts'
import { captureShown, FramePath, LinkVerdict } from './schema/nio.ts'

/** A port of a node of the project. */
export type LinkPort = Static<typeof LinkPort>
const { project_id: _, ...portFields } = LinkEnd.properties
export const LinkPort = closedSchema('LinkPort', 'A port of a node of the project', portFields)

/** The two ports, `a` and `b`. */
export type LinkPorts = readonly [a: LinkPort, b: LinkPort]
const nodes = Type.Unsafe<LinkPorts>(
  Type.Tuple([LinkPort, LinkPort], { description: 'The two ports, "a" and "b"; both are on this compute' }),
)

const { $id: __, ...filtersShape } = Filters
const filters = (way: string) =>
  Type.Unsafe<Filters>({ ...filtersShape, description: `Impairment of the frames ${way}` })
const settings = maybes({
  filters_ab: filters('from a to b'),
  filters_ba: filters('from b to a'),
  suspend: Type.Boolean({ description: 'true: the link is down; frames are dropped in both directions' }),
})

/** What a link does to frames; a member that is absent or null means none, in a change "leave". */
export type LinkSettings = Static<typeof LinkSettings>
const LinkSettings = Type.Object(settings)
export const DirectLinkPut = closedSchema('DirectLinkPut', 'A link as it should be; without `nodes`, changes to it', {
  nodes: Type.Optional(nodes),
  ...settings,
})

/** A link of a bulk. */
export type DirectLinkJoin = Static<typeof DirectLinkJoin>
export const DirectLinkJoin = closedSchema('DirectLinkJoin', 'A link of several', { link_id: Uuid, nodes, ...settings })
export const DirectLinksJoin = closedSchema('DirectLinksJoin', 'Links that should exist', {
  links: Type.Array(DirectLinkJoin, { maxItems: 10_000, description: 'Each one is joined or refused on its own' }),
})

/** What became of a link of a bulk. */
export type DirectLinkJoined = Static<typeof DirectLinkJoined>
export const DirectLinkJoined = objectSchema('DirectLinkJoined', 'What became of a link', {
  link_id: Uuid,
  error: nullable(
    Type.Object(
      { message: Type.String(), status: Type.Integer() },
      { description: 'Why the link does not exist; null if it does' },
    ),
  ),
})

const count = (description: string) => Type.Integer({ minimum: 0, description })
const rate = (description: string) => Type.Number({ minimum: 0, description })
export type LinkTraffic = Static<typeof LinkTraffic>
export const LinkTraffic = objectSchema('LinkTraffic', 'One direction of a link', {
  frames: count('Frames that arrived, since the ports were opened'),
  bytes: count('Their bytes'),
  dropped: count('Frames that were dropped, for any reason'),
  frames_per_s: rate('Between the last two readings; 0 at the first one'),
  bits_per_s: rate('Likewise'),
})

export const isSameTraffic = (one: LinkTraffic, other: LinkTraffic): boolean =>
  one.frames === other.frames &&
  one.bytes === other.bytes &&
  one.dropped === other.dropped &&
  one.frames_per_s === other.frames_per_s &&
  one.bits_per_s === other.bits_per_s

/** The verdicts on a NIO, and those that only a direct link has. */
export type DirectLinkVerdict = LinkVerdict | 'stopped' | 'detached'
const verdicts = [...LinkVerdict.anyOf.map((it) => it.const), 'stopped', 'detached'] as const
export const DirectLinkVerdict = Type.Unsafe<DirectLinkVerdict>(
  oneOf(verdicts, {
    description: `${LinkVerdict.description}; stopped: a node at one end is not running; detached: a port was taken over, or no longer exists`,
  }),
)

/** What the state of a link depends on at one of its ends. */
export interface LinkEndState {
  /** The node, and whether it runs. */
  readonly name: string
  readonly status: string
  /** What the port says of the link, if it is known. */
  readonly link: LinkVerdict | null | undefined
  readonly reason: string | null | undefined
}

/** Verdicts from the most harm to the least. */
const worst = ['port_taken', 'detached', 'peer_unreachable', 'one_way', 'silent', 'stopped', 'suspended', 'ok'] as const

/** The worst of some verdicts, without those of newer computes that are not known here; undefined: there is none. */
export function worstVerdict(verdicts: Iterable<DirectLinkVerdict>): DirectLinkVerdict | undefined {
  const given = new Set(verdicts)
  return worst.find((it) => given.has(it))
}

/** The verdict on a link within a compute, or over two, and its reason. */
export function linkVerdictOf(
  suspend: boolean,
  ends: readonly LinkEndState[],
): readonly [DirectLinkVerdict, string | null] {
  if (suspend) return ['suspended', 'The link is suspended: resume it']
  for (const { name, status } of ends) {
    if (status === 'stopped') return ['stopped', `${name} is not running: start it`]
    if (status === 'suspended') return ['stopped', `${name} is suspended: resume it`]
  }
  const found = worst.find((verdict) => ends.some(({ link }) => link === verdict)) ?? 'ok'
  return [found, ends.find(({ link }) => link === found)?.reason ?? null]
}

/** The present state of a link. */
export type DirectLinkState = Static<typeof DirectLinkState>
export const DirectLinkState = objectSchema('DirectLinkState', 'The state of a link', {
  link_id: Uuid,
  verdict: DirectLinkVerdict,
  reason: nullable(Type.String({ description: 'Why no frames pass, and what to do; null if nothing is wrong' })),
  path: Type.Optional(FramePath),
  ab: LinkTraffic,
  ba: LinkTraffic,
})

/** The states that changed after an earlier request. */
export type DirectLinkChanges = Static<typeof DirectLinkChanges>
export const DirectLinkChanges = objectSchema('DirectLinkChanges', 'States of links that changed', {
  states: Type.Array(DirectLinkState, { description: 'In the order of their changes, at most 250' }),
  next: Type.String({ description: '`since` of the next request' }),
  more: Type.Boolean({ description: 'More states have changed: request them with `next`' }),
})

const capture = nullable(captureShown)
type Capture = Static<typeof capture>
/** A link with its state. */
export type DirectLink = Static<typeof DirectLink>
export const DirectLink = objectSchema('DirectLink', 'Two ports of a compute that are joined', {
  project_id: Uuid,
  nodes,
  filters_ab: Filters,
  filters_ba: Filters,
  suspend: Type.Boolean(),
  ...DirectLinkState.properties,
  captures: Type.Unsafe<readonly [Capture, Capture]>(
    Type.Tuple([capture, capture], { description: 'The captures at a and at b' }),
  ),
})
