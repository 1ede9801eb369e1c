import type { HostAgent } from '../../host-agent.ts'
import type { DesiredNode, WantedDigest } from '../../labfile/desired.ts'
import type { Position } from '../../labfile/position.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import { quotedPath } from '../../lib/text/escape.ts'
import { nearest } from '../../lib/text/nearest-word.ts'
import { type Image, type ImageKindName, isImageKind } from '../../model/image.ts'
import { containerImageFile, imageCommands } from '../../model/kinds/image-names.ts'
import { kindOf } from '../../model/kinds/node.ts'
import { imageProperties } from '../../model/lab/archive-words.ts'
import type { ComputeAgents } from '../computes/agents.ts'

import type { Labs } from '../service.ts'
import type { Plan } from './types.ts'

/** An image that a node of a lab file needs. */
interface WantedImage {
  readonly want: DesiredNode
  readonly kind: ImageKindName
  readonly field: string
  readonly name: string
  readonly digest: WantedDigest | undefined
  /** The compute of the node; undefined: any. */
  readonly compute_id: string | undefined
}

/** Answers of computes. Each compute is asked once. */
interface Answers {
  /** Ids of the connected computes. */
  readonly all: readonly string[]
  /** Whether a compute has an image; undefined: it cannot tell. */
  isThere(computeId: string, kind: ImageKindName, name: string): Promise<boolean | undefined>
  images(computeId: string, kind: ImageKindName): Promise<readonly Image[] | undefined>
  /** Whether an image is among the files of the project. */
  isInProject(name: string): Promise<boolean>
}

/** An image that a node needs and cannot get. */
export interface MissingImage {
  readonly want: DesiredNode
  readonly image: string
  readonly at: Position
  readonly message: string
  /** What would be right. */
  readonly hint: string
}

/**
 * The images that steps of a plan need and no compute has, and those that have another digest than the file asks for. An image on
 * another compute than that of its node counts: a gateway copies it. An image that cannot be checked now fails its step.
 */
export async function missingImages(
  { computes }: Pick<Labs, 'computes'>,
  { plan, nodes }: { plan: Plan; nodes: readonly DesiredNode[] },
  {
    agentFor,
    computeOf,
    project_id,
  }: {
    agentFor: ComputeAgents
    /** The compute of a node; undefined: it has none yet. */
    computeOf: (want: DesiredNode) => string | undefined
    /** The project, when it is there: nodes also find images among its files. */
    project_id?: string
  },
): Promise<MissingImage[]> {
  const wanted = imagesOf(plan, nodes, computeOf)
  if (wanted.length === 0) return []
  const answers = answersOf(await computes.all(), agentFor, project_id)
  const found = await mapLimit(wanted, async (image): Promise<MissingImage | undefined> => {
    const issue = await issueOf(image, answers)
    if (issue === undefined) return undefined
    const { want, field, name } = image
    const key = field === kindOf(image.kind).image?.field && 'image' in want.keys ? 'image' : field
    const [message, hint] = issue
    return { want, image: name, at: want.keys[key] ?? want.at, message, hint }
  })
  return found.filter((it) => it !== undefined)
}

/** The images that steps give to nodes, and all images whose digest is in the file. */
function imagesOf(
  { steps }: Plan,
  nodes: readonly DesiredNode[],
  computeOf: (want: DesiredNode) => string | undefined,
): WantedImage[] {
  const given = new Map<DesiredNode, Readonly<Record<string, unknown>>>()
  // A placeholder has none of its images yet.
  for (const { task } of steps)
    if ('want' in task)
      given.set(task.want, { ...(task.type === 'retry-node' && task.want.properties), ...task.change.properties })
  return nodes.flatMap((want): WantedImage[] => {
    const { kind, imageDigest, properties } = want
    if (!isImageKind(kind)) return []
    const main = kindOf(kind).image?.field
    const own = imageDigest === undefined || main === undefined ? {} : { [main]: properties[main] }
    const all = { ...own, ...given.get(want) }
    return imageProperties({ node_type: kind, properties: all })
      .map((field) => ({ field, name: all[field] as string }))
      .filter(({ name }) => !name.startsWith('/') && !name.startsWith('./'))
      .map((image) => ({
        want,
        kind,
        compute_id: computeOf(want),
        ...image,
        digest: image.field === main ? imageDigest : undefined,
      }))
  })
}

function answersOf(all: readonly string[], agentFor: ComputeAgents, project_id: string | undefined): Answers {
  const answers = new Map<string, Promise<unknown>>()
  const once = <T>(key: string, run: () => Promise<T>): Promise<T> => {
    const answer = (answers.get(key) as Promise<T> | undefined) ?? run()
    answers.set(key, answer)
    return answer
  }
  return {
    all,
    isThere: (id, kind, name) => once(`${id} ${kind} ${name}`, () => isThere(agentFor(id), kind, name)),
    // A compute that does not answer has no images to propose.
    images: (id, kind) =>
      once(`${id} ${kind}`, () =>
        agentFor(id)
          .images.list(kind)
          .catch(() => undefined),
      ),
    async isInProject(name) {
      if (project_id === undefined) return false
      const files = (id: string) =>
        agentFor(id).files.list(project_id, { sums: false }).catch(ignore('a compute without the project'))
      const lists = await mapLimit(all, (id) => once(`files ${id}`, () => files(id)))
      return lists.some((list) => list?.some(({ path }) => isNamed(path, name)))
    },
  }
}

async function isThere(compute: HostAgent, kind: ImageKindName, name: string): Promise<boolean | undefined> {
  const isOfRegistry = kindOf(kind).image?.isOfRegistry === true
  const file = isOfRegistry ? containerImageFile(name) : name
  if (file !== name && (await isThere(compute, kind, file)) === true) return true
  try {
    const { content } = await compute.images.read(kind, name, { range: { first: 0, last: 0 } })
    await content.cancel()
    return true
  } catch (error) {
    return error instanceof ApiError && error.code === 'image-missing' ? false : undefined
  }
}

/** Whether a name means an image: it is the path of the image, or the end of the path. */
const isNamed = (path: string, name: string): boolean => path === name || path.endsWith(`/${name}`)

/** What is wrong with an image, and what would be right. */
async function issueOf(
  { kind, name, digest, compute_id }: WantedImage,
  { all, isThere, images, isInProject }: Answers,
): Promise<[message: string, hint: string] | undefined> {
  const order = compute_id === undefined ? all : [compute_id, ...all.filter((id) => id !== compute_id)]
  let has: string | undefined
  for (const id of order) {
    if ((await isThere(id, kind, name)) === false) continue
    has = id
    break
  }
  if (has === undefined) {
    if (order.length === 0 || (await isInProject(name))) return undefined
    const known = (await Promise.all(order.map((id) => images(id, kind)))).flatMap((list) => list ?? [])
    const near = nearest(
      name,
      known.map(({ path }) => path),
    )
    const commands = kindOf(kind).image?.isOfRegistry === true ? imageCommands(name) : undefined
    const bring = commands ?? 'upload it first'
    const hint = near === undefined ? bring : `did you mean ${quotedPath(near)}? Otherwise ${bring}`
    return [`there is no image ${quotedPath(name)}`, hint]
  }
  if (digest === undefined) return undefined
  const list = await images(has, kind)
  if (list === undefined) return undefined
  const image = list.find(({ path }) => isNamed(path, name))
  const sum = digest.algorithm === 'md5' ? image?.md5sum : image?.sha256
  if (sum === undefined)
    return [`its compute does not know the ${digest.algorithm} digest of ${quotedPath(name)}`, 'leave out the digest']
  if (sum === digest.hex) return undefined
  return [
    `the image ${quotedPath(name)} has different content: its ${digest.algorithm} digest is ${sum}`,
    'upload the right one, or correct the digest',
  ]
}
