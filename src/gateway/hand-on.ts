import type { KeyedMutex } from '../async/keyed-mutex.ts'
import { messageOf } from '../client/greeting.ts'
import { ApiError, missingImage } from '../errors/api-error.ts'
import { type ErrorWord, errorHeader } from '../errors/words.ts'
import type { Forwarded } from '../fleet/forward.ts'
import type { RelayedAnswer } from '../http/relayed-answer.ts'
import type { RequestingCaller } from './asker.ts'
import { presented } from './fan-out.ts'
import type { BringImage } from './image-copies.ts'
import type { Member } from './members.ts'
import type { ProjectLocator } from './project-locator.ts'

/** Images that are brought for one request: no node has more. */
const maxImages = 12

/** A request about one project. */
export interface ProjectRequest extends Omit<Forwarded, 'caller' | 'body'> {
  /** The whole body; without it the body of the request is a stream, and is sent once. */
  readonly body: Uint8Array<ArrayBuffer> | undefined
  /** Lower-case. */
  readonly projectId: string
  /** See `Endpoint.endsProject`. */
  readonly endsProject: boolean
}

export interface HandOnOptions {
  readonly locator: ProjectLocator
  readonly caller: RequestingCaller
  readonly bring: BringImage
  /** By project: what places it and what ends it come one after the other. */
  readonly turns: KeyedMutex
}

/**
 * Hands a request on to the compute that has its project, and gives the answer back as it is. A compute that says that it has no
 * such project is not believed when another compute has it; an image that the compute lacks is brought there. Then the request
 * is handed on again, unless its body is a stream. 404 when no compute has the project, 503 when its compute is not there.
 */
export function handOn(request: ProjectRequest, options: HandOnOptions): Promise<Response | RelayedAnswer> {
  const { projectId, endsProject } = request
  if (!endsProject) return handOnWithImages(request, options)
  return options.turns.run(projectId, async () => {
    const answer = await handOnWithImages(request, options)
    // A closed project is opened again where its files are.
    if (answer.status < 300 && !(await options.locator.isThere(projectId))) await options.locator.forget(projectId)
    return answer
  })
}

async function handOnWithImages(request: ProjectRequest, options: HandOnOptions): Promise<Response | RelayedAnswer> {
  const brought = new Set<string>()
  for (;;) {
    const answer = await handOnToOwner(request, options)
    const image = imageMissingIn(answer)
    if (image === undefined || !isRepeatable(request) || brought.has(image) || brought.size === maxImages) return answer
    brought.add(image)
    const outcome = await options.bring(request.projectId, image).catch(() => undefined)
    if (outcome === undefined) return answer
    if (outcome !== 'brought') throw missingImage(outcome.refused, image)
  }
}

async function handOnToOwner(
  request: ProjectRequest,
  { locator, caller }: HandOnOptions,
): Promise<Response | RelayedAnswer> {
  const { projectId } = request
  const ask = async (member: Member): Promise<Response | RelayedAnswer> => {
    caller.answered(member.id)
    const answer = await member.forward({ ...request, caller: caller.caller }).catch((error: unknown) => {
      throw presented(error, member)
    })
    return answer.status === 500 ? failureOf(answer, member) : answer
  }
  const member = await locator.locate(projectId)
  const answer = await ask(member)
  if (wordOf(answer) !== 'no-such-project') return answer
  const other = await locator.relocate(projectId, member)
  return other === undefined || !isRepeatable(request) ? answer : ask(other)
}

/** Whether nothing of the request was used up. */
const isRepeatable = ({ request: { method }, body }: ProjectRequest): boolean =>
  method === 'GET' || method === 'HEAD' || body !== undefined

const wordOf = (answer: Response | RelayedAnswer): ErrorWord | undefined =>
  'content' in answer ? (answer.headers[errorHeader] as ErrorWord | undefined) : undefined

/** A defect of a compute is none of the gateway. */
function failureOf(answer: Response | RelayedAnswer, { name }: Member): never {
  throw new ApiError(502, `The compute ${name} failed: ${messageOf(errorIn(answer))}`)
}

/** The image that the compute says it lacks. */
function imageMissingIn(answer: Response | RelayedAnswer): string | undefined {
  const { image } = wordOf(answer) === 'image-missing' ? errorIn(answer) : {}
  return typeof image === 'string' ? image : undefined
}

/** The body of an error, which is always whole. */
function errorIn(answer: Response | RelayedAnswer): { readonly image?: unknown } {
  const isError = 'content' in answer && answer.content instanceof Uint8Array
  return isError ? JSON.parse(new TextDecoder().decode(answer.content)) : {}
}
