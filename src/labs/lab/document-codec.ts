import type {
  CaptureRecord,
  LinkRecord,
  NodeLastApplied,
  NodeRecord,
  ProjectLastApplied,
  ProjectRecord,
  Restoring,
  SnapshotContent,
  SnapshotRecord,
} from './document.ts'
import type { LabEntries, LabStorage, StoredHead } from './store.ts'

/** How records of a type differ in storage, by the members that differ. */
type Form<T> = {
  readonly [K in keyof T]?: {
    /** The name of the member in storage. */
    readonly name?: string
    /** The words of its value in storage. */
    readonly words?: Readonly<Record<string & T[K], string>>
    /** How its value differs, or each item of it. */
    readonly form?: Form<Item<NonNullable<T[K]>>>
  }
}
type Item<T> = T extends readonly (infer I)[] ? I : T

const projectLastApplied: Form<ProjectLastApplied> = { pendingApply: { name: 'begun' } }
const nodeLastApplied: Form<NodeLastApplied> = {
  managed: { name: 'made' },
  computeDefaults: { name: 'own' },
  normalizedValues: { name: 'shownAs' },
}
const capture: Form<CaptureRecord> = {
  fileName: { name: 'file' },
  requestedName: { name: 'asked' },
  managed: { name: 'made' },
}
const restoring: Form<Restoring> = {
  phase: {
    name: 'way',
    words: { swapping: 'forward', committed: 'on', 'rolling-back': 'back', 'rolled-back': 'undone' },
  },
  lastRunning: { name: 'ran' },
  formerComputes: { name: 'left' },
}
const project: Form<ProjectRecord> = {
  lastApplied: { name: 'file', form: projectLastApplied },
  snapshotInProgress: { name: 'taking' },
  restoring: { form: restoring },
  formerComputes: { name: 'left' },
  pendingLinks: { name: 'unjoined' },
  archivedRevision: { name: 'archived' },
  archiveAttempts: { name: 'archiving' },
}
const node: Form<NodeRecord> = {
  creationError: { name: 'unmade' },
  lastApplied: { name: 'file', form: nodeLastApplied },
}
const link: Form<LinkRecord> = {
  capture: { form: capture },
  lastApplied: { name: 'file', form: { managed: { name: 'made' } } },
}
const snapshot: Form<SnapshotRecord> = { lastRunning: { name: 'ran' } }
/** The document of a snapshot. */
const document: Form<SnapshotContent> = { project: { form: project }, node: { form: node }, link: { form: link } }

/** For each name of a member in the source what it is in the target. */
type Translation = ReadonlyMap<string, Target>
interface Target {
  readonly name: string
  readonly words: ReadonlyMap<unknown, string>
  readonly inner: Translation
}

/** The translations of a form: to what is stored, and back. */
function translations(form: Form<Record<string, never>>): readonly [encode: Translation, decode: Translation] {
  const [encode, decode] = [new Map<string, Target>(), new Map<string, Target>()]
  for (const [name, { name: stored = name, words = {}, form: inner = {} } = {}] of Object.entries(form)) {
    const [encodeInner, decodeInner] = translations(inner)
    const pairs = Object.entries<string>(words)
    encode.set(name, { name: stored, words: new Map(pairs), inner: encodeInner })
    decode.set(stored, { name, words: new Map(pairs.map(([word, other]) => [other, word])), inner: decodeInner })
  }
  return [encode, decode]
}

/** A value with the names of the target. Its members keep their order; a value in which nothing differs is returned itself. */
function translated(value: unknown, translation: Translation): unknown {
  if (typeof value !== 'object' || value === null || translation.size === 0) return value
  if (Array.isArray(value)) return value.map((item) => translated(item, translation))
  if (!Object.keys(value).some((name) => translation.has(name))) return value
  const members = Object.entries(value).map(([name, member]) => {
    const target = translation.get(name)
    return target === undefined
      ? [name, member]
      : [target.name, target.words.get(member) ?? translated(member, target.inner)]
  })
  return Object.fromEntries(members)
}

const tables = new Map(
  Object.entries({ project, node, link, snapshot, document }).map(([table, form]) => [
    table,
    translations(form as Form<Record<string, never>>),
  ]),
)

function translatedEntries(entries: LabEntries, direction: 0 | 1): LabEntries {
  return new Map(
    [...entries].map(([key, value]) => {
      const [table = ''] = key.split('/')
      const pair = tables.get(table)
      return [key, pair === undefined ? value : translated(value, pair[direction])]
    }),
  )
}

/** The entries of a document as they are stored, and sent to other processes. */
export const encodeEntries = (entries: LabEntries): LabEntries => translatedEntries(entries, 0)
/** The entries of a stored document. */
export const decodeEntries = (stored: LabEntries): LabEntries => translatedEntries(stored, 1)

/** The head of a lab as it is stored, and sent to other processes. */
export const encodeHead = (head: ProjectRecord): unknown => encodeEntries(new Map([['project', head]])).get('project')
/** The head of a lab from its stored form. */
export const decodeHead = (stored: unknown): ProjectRecord =>
  decodeEntries(new Map([['project', stored]])).get('project') as ProjectRecord

/** A store that takes and returns records with the names that they have in code. */
export const recordStorage = (store: LabStorage): LabStorage => ({
  async heads() {
    const heads = await store.heads()
    return new Map(
      [...heads].map(([id, stored]): [string, StoredHead] => [id, { ...stored, head: decodeHead(stored.head) }]),
    )
  },
  async load(id) {
    const stored = await store.load(id)
    return stored && decodeEntries(stored)
  },
  save: (id, changes) => store.save(id, encodeEntries(changes)),
  remove: (id) => store.remove(id),
})
