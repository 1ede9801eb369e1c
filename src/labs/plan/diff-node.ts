import type { DesiredNode } from '../../labfile/desired.ts'
import type { KindDescriptor } from '../../model/kinds/kind.ts'
import { isAlwaysOn, kindOf } from '../../model/kinds/node.ts'
import type { NodeRecord } from '../lab/document.ts'
import { day0Media } from '../nodes/day0.ts'
import { differenceOf } from './difference-text.ts'
import { same } from './json-equal.ts'
import { day0In, day0Keys, isShown } from './marks.ts'
import { isPresent, type NodeMatch, type PresentMatch } from './match-nodes.ts'
import { mergeConfigs } from './merge-configs.ts'
import { defaultsOf, settingDefault, settingKeys, settingsOf } from './node-defaults.ts'
import { changeOf, type NodeDifference, propertyDifference, textOf } from './node-difference.ts'
import {
  type Actual,
  type PlanFlag,
  type PlannedChange,
  type PlanOptions,
  type PlanPart,
  stepOf,
  wantedCompute,
} from './types.ts'

/** What becomes of a node of the file. */
export interface NodeDecision extends PlanPart {
  readonly match: NodeMatch
  /** `outdated`: a change of it is withheld. */
  readonly outcome: 'created' | 'kept' | 'recreated' | 'outdated'
  /** The flag that a withheld change needs. Links to ports that the change would add need it, too. */
  readonly flag?: PlanFlag
  /** The node after the changes that are not withheld; absent: as it is. */
  readonly next?: NodeRecord
  /** Whether a step stops it. */
  readonly isStopped: boolean
  /** Whether it needs no step, but a record of what the file says of it. */
  readonly isMarked: boolean
}

/** What a node is compared by, beside the file. */
interface NodeContext {
  readonly actual: Actual
  readonly options: PlanOptions
  /** Where it is on the map if the file does not say. */
  readonly position: { readonly x: number; readonly y: number } | undefined
  /** The ports of a segment, as members of its properties. */
  readonly ports: Readonly<Record<string, unknown>>
}

const nothing = { steps: [], withheld: [], extra: [], isStopped: false, isMarked: false } as const
const objectOf = ({ name, segment }: DesiredNode) =>
  ({ what: segment === undefined ? 'node' : 'segment', name }) as const

/** Compares a node with the file. */
export function diffNode(match: NodeMatch, context: NodeContext): NodeDecision {
  const { want } = match
  const { actual, options, position, ports } = context
  const all: PlannedChange = {
    settings: {
      ...settingsOf(want),
      ...(want.settings.x === undefined && want.settings.y === undefined && position),
    },
    properties: { ...want.properties, ...ports },
    configs: Object.keys(want.configs),
  }
  if (!isPresent(match)) {
    const node_id = actual.nodes.has(want.node_id) ? undefined : want.node_id
    const step = { do: 'create', ...objectOf(want), how: 'live' } as const
    const steps = [stepOf(step, { type: 'create-node', want, node_id, change: all })]
    return { ...nothing, match, outcome: 'created', steps }
  }
  const { node_id, node_type, creationError } = match.have
  const recreation = recreationOf(match, options)
  if (recreation === undefined) return updateOf(match, all, context)
  const step = { do: 'update', ...objectOf(want), how: 'recreate', because: recreation.because } as const
  if (options.recreate === true) {
    const steps = [stepOf(step, { type: 'recreate-node', want, node_id, change: all })]
    return { ...nothing, match, outcome: 'recreated', steps, isStopped: actual.running.has(node_id) }
  }
  const withheld = [{ ...step, flag: 'recreate' }] as const
  // Settings of another kind are not settings of this node.
  if (node_type !== want.kind || creationError !== undefined)
    return { ...nothing, match, outcome: 'outdated', flag: 'recreate', withheld }
  const update = updateOf(match, all, context, recreation.keys)
  return {
    flag: 'recreate',
    ...update,
    outcome: 'outdated',
    isMarked: false,
    withheld: [...withheld, ...update.withheld],
  }
}

/** Why a node must be recreated, and the properties that only a new node takes; undefined: it need not be. */
function recreationOf(
  { want, have, isManaged }: PresentMatch,
  options: PlanOptions,
): { because: string; keys: readonly string[] } | undefined {
  if (have.node_type !== want.kind)
    return { because: `its kind is ${have.node_type}, ${want.kind} in the file`, keys: [] }
  const { create, update } = kindOf(want.kind)
  const keys = Object.entries(isManaged ? want.properties : {}).flatMap(([key, value]) =>
    key in create.properties && !(key in update.properties) && !isShown(have, key, value) ? [key] : [],
  )
  const hasOtherCd = have.lastApplied?.managed === true && have.lastApplied.day0 !== day0In(want, have)
  const words = [...keys, ...(hasOtherCd ? ['day0'] : [])]
  const compute = wantedCompute(want, options)
  const reasons = [
    ...(compute !== undefined && compute !== have.compute_id ? [`it is on the compute ${have.compute_id}`] : []),
    ...(words.length > 0 ? [`${words.join(', ')} ${words.length > 1 ? 'are' : 'is'} read at creation only`] : []),
  ]
  if (reasons.length === 0) return undefined
  return { because: reasons.join('; '), keys: [...keys, ...(hasOtherCd ? day0Keys(want, have) : [])] }
}

/** Changes a node that stays. `recreated`: properties that only a new node takes, which a withheld step changes. */
function updateOf(
  match: PresentMatch,
  all: PlannedChange,
  { actual, options }: NodeContext,
  recreated: readonly string[] = [],
): NodeDecision {
  const { want, have, isManaged } = match
  const { node_id } = have
  const object = objectOf(want)
  const medium = want.day0 && day0Media[want.day0.medium]
  const properties = { ...all.properties, ...(medium && { [medium.property]: medium.file }) }
  const configs = mergeConfigs(match, actual, options)
  const differences = [...differencesOf(match, { ...all, properties }, recreated), ...configs.differences]
  const live = differences.filter(({ needsStop }) => !needsStop)
  const restarting = differences.filter(({ needsStop }) => needsStop)
  const both = [...live, ...restarting]
  const decision = { ...nothing, match, outcome: 'kept', extra: configs.extra, withheld: configs.withheld } as const
  if (have.creationError !== undefined) {
    const step = { do: 'create', ...object, how: 'live', because: 'its compute could not make it' } as const
    return { ...decision, steps: [stepOf(step, { type: 'retry-node', want, node_id, change: changeOf(both) })] }
  }
  const needsStop = actual.running.has(node_id) && restarting.length > 0
  const isHeld = needsStop && options.restart !== true
  const stops = needsStop && !isHeld
  const applied = isHeld ? live : both
  const change = changeOf(applied)
  const held = [...recreated, ...(isHeld ? Object.keys(changeOf(restarting).properties) : [])]
  const because = textOf(restarting)
  const isMarked = !isHeld && (isManaged || Object.keys(want.configs).length > 0)
  const step = { do: 'update', ...object, how: stops ? 'restart' : 'live', because: textOf(applied) } as const
  return {
    ...decision,
    ...(isHeld && {
      ...({ outcome: 'outdated', flag: 'restart' } as const),
      withheld: [...configs.withheld, { do: 'update', ...object, how: 'restart', because, flag: 'restart' }],
    }),
    next: { ...have, properties: { ...have.properties, ...change.properties } },
    ...(applied.length > 0
      ? { steps: [stepOf(step, { type: 'change-node', want, node_id, change, held, stops })], isStopped: stops }
      : { isMarked }),
  }
}

/** What differs between a node and the file, configurations apart. */
function differencesOf(
  match: PresentMatch,
  { settings, properties }: PlannedChange,
  held: readonly string[],
): NodeDifference[] {
  const { want, have, isManaged } = match
  const { liveFields = [], renameNeedsRestart = false }: KindDescriptor = kindOf(want.kind)
  const needsStop = (key: string) => !isAlwaysOn(want.kind) && !liveFields.includes(key)
  const { name } = want
  const rename = { needsStop: renameNeedsRestart, text: `its name was ${have.name}`, change: { name } }
  const given = Object.entries(properties).filter(([key, value]) => !held.includes(key) && !isShown(have, key, value))
  const reset = defaultsOf(want.kind, have).filter(
    ([key, value]) =>
      !(held.includes(key) || key in properties || have.lastApplied?.computeDefaults?.includes(key)) &&
      !same(have.properties[key], value),
  )
  return [
    ...(have.name === name ? [] : [rename]),
    ...settingKeys.flatMap((key) => settingDifference(match, settings, key) ?? []),
    ...[...given, ...(isManaged ? reset : [])].map(([key, value]) =>
      propertyDifference(key, value, have.properties[key], needsStop(key)),
    ),
  ]
}

/** What differs in a setting: the file gives it, or it gets its default again. */
function settingDifference(
  { want, have, isManaged }: PresentMatch,
  settings: PlannedChange['settings'],
  key: keyof PlannedChange['settings'],
): NodeDifference | undefined {
  const given = settings[key]
  const isPlace = key === 'x' || key === 'y'
  const isGiven =
    given !== undefined &&
    (!isPlace || want.settings[key] !== undefined || have.lastApplied?.keys.includes(key) === true)
  const isReset =
    isManaged && !isGiven && !isPlace && key !== 'console' && have.lastApplied?.computeDefaults?.includes(key) !== true
  if (!isGiven && !isReset) return undefined
  const value = isGiven ? given : settingDefault(want.kind, key)
  const now = key === 'labels' || key === 'placement' ? (have[key] ?? {}) : have[key]
  if (same(now, value) || value === undefined) return undefined
  const text = isPlace
    ? differenceOf('at', placeOf(have), placeOf({ ...have, ...settings }))
    : differenceOf(key, now, value)
  const needsStop = (key === 'custom_adapters' || key === 'console_type') && !isAlwaysOn(want.kind)
  return { needsStop, text, change: { settings: { [key]: value } } }
}

const placeOf = ({ x, y }: { readonly x?: number; readonly y?: number }): readonly unknown[] => [x, y]
