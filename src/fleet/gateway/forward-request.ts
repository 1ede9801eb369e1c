import { messageOf } from '../../compute/remote/greeting.ts'
import type { KeyedMutex } from '../../lib/async/keyed-mutex.ts'
import { ApiError, missingImage } from '../../lib/errors/api-error.ts'
import { type ErrorCode, errorHeader } from '../../lib/errors/error-codes.ts'
import type { RelayedAnswer } from '../../lib/http/relayed-answer.ts'
import type { Forwarded } from '../forward/forward.ts'
import { maxImages, type ReplicateImage } from '../images/image-copies.ts'
import { withComputeContext } from '../members/member-errors.ts'
import type { Member } from '../members/members.ts'
import type { RequestingCaller } from '../members/requesting-caller.ts'
import type { ProjectLocator } from '../placement/project-locator.ts'

/** A request about one project. */
export interface ProjectRequest extends Omit<Forwarded, 'caller' | 'body'> {
  /** The whole body; absent: the body of the request is a stream, which is sent once. */
  readonly body: Uint8Array<ArrayBuffer> | undefined
  /** Lower-case. */
  readonly projectId: string
  /** Id of the node or link that the request is about, lower-case. */
  readonly part: string | undefined
  /** See `Endpoint.endsProject`. */
  readonly endsProject: boolean
}

export interface ForwardOptions {
  readonly locator: ProjectLocator
  readonly replicateImage: ReplicateImage
  /** By project: requests that place and that end a project run one after the other. */
  readonly turns: KeyedMutex
}

/**
 * Forwards a request to the compute of its project, and returns the answer unchanged. When the compute does not have the project
 * and another compute does, or when the compute lacks an image that can be copied to it, the request is forwarded again, unless its
 * body is a stream. 404 when no compute has the project, 503 when its compute is not connected.
 */
export function forwardRequest(
  request: ProjectRequest,
  options: ForwardOptions,
  caller: RequestingCaller,
): Promise<Response | RelayedAnswer> {
  const { projectId, endsProject } = request
  if (!endsProject) return forwardUntilAnswered(request, options, caller)
  return options.turns.run(projectId, async () => {
    const answer = await forwardUntilAnswered(request, options, caller)
    if (answer.status < 300) await endElsewhere(request, options, caller)
    // A closed project keeps its placement: it is opened again where its files are. The placement of a lost project is removed.
    const hasEnded = answer.status < 300 || codeOf(answer) === 'no-such-project'
    if (hasEnded && !(await options.locator.exists(projectId))) await options.locator.forget(projectId)
    return answer
  })
}

/** A lab on several computes ends on all of them. A compute that does not have the project any more is not a failure. */
async function endElsewhere(
  request: ProjectRequest,
  { locator }: ForwardOptions,
  { caller }: RequestingCaller,
): Promise<void> {
  for (const member of await locator.others(request.projectId, await locator.locate(request.projectId))) {
    const { status } = await member.forward({ ...request, caller })
    if (status >= 400 && status !== 404)
      throw new ApiError(502, `The project is still open on the compute ${member.name}`)
  }
}

/** Sends the request to computes, one after the other, until an answer is one for the client. */
async function forwardUntilAnswered(
  request: ProjectRequest,
  options: ForwardOptions,
  caller: RequestingCaller,
): Promise<Response | RelayedAnswer> {
  const located = options.locator.locate(request.projectId, request.part)
  let member = located instanceof Promise ? await located : located
  let retries: Retries | undefined
  for (;;) {
    const answer = await answerOf(member, request, caller)
    if (answer.status < 400) return answer
    // A defect of a compute is not a defect of the gateway.
    if (answer.status === 500)
      throw new ApiError(502, `The compute ${member.name} failed: ${messageOf(errorIn(answer))}`)
    retries ??= new Retries(request, options)
    const next = await retries.nextAfter(answer, member)
    if (next === undefined) return answer
    member = next
  }
}

/** The answer of a compute: the one that it has just given to the caller on another way, or else to the request sent now. */
async function answerOf(
  member: Member,
  request: ProjectRequest,
  requesting: RequestingCaller,
): Promise<Response | RelayedAnswer> {
  const { caller, notes } = requesting
  requesting.noteCompute(member.id)
  const { failedAnswer } = notes
  delete notes.failedAnswer
  if (failedAnswer?.compute === member.id) return failedAnswer.answer
  try {
    return await member.forward({ ...request, caller })
  } catch (error) {
    throw withComputeContext(error, member)
  }
}

/** Decides where a request that a compute has refused is sent again. */
class Retries {
  readonly #request: ProjectRequest
  readonly #options: ForwardOptions
  /** The compute that has the project was searched for, and the request sent there. */
  #isRelocated = false
  /** Computes of the lab that may have the node or link. */
  #others: Member[] | undefined
  readonly #copiedImages = new Set<string>()

  constructor(request: ProjectRequest, options: ForwardOptions) {
    this.#request = request
    this.#options = options
  }

  /** The compute to send the request to after this refusal, which may be the same one. Undefined: the client gets the refusal. */
  async nextAfter(refusal: Response | RelayedAnswer, from: Member): Promise<Member | undefined> {
    const code = codeOf(refusal)
    if (code === 'no-such-project') return this.#ownerOfProject(from)
    if (!isRepeatable(this.#request)) return undefined
    if (code === 'no-such-node' || code === 'no-such-link') return this.#nextOfLab(from)
    const image = imageMissingIn(refusal)
    return image === undefined ? undefined : this.#withImage(image, from)
  }

  /** Also learned for the next request, when this one cannot be repeated. */
  async #ownerOfProject(from: Member): Promise<Member | undefined> {
    if (this.#isRelocated) return undefined
    this.#isRelocated = true
    const owner = await this.#options.locator.relocate(this.#request.projectId, from)
    return isRepeatable(this.#request) ? owner : undefined
  }

  /** A client of the compute interface may have made the node or link on another compute of the lab. */
  async #nextOfLab(from: Member): Promise<Member | undefined> {
    const { projectId, part } = this.#request
    if (part === undefined) return undefined
    this.#others ??= await this.#options.locator.others(projectId, from)
    return this.#others.shift()
  }

  /** 409 with the reason when the image cannot be copied. */
  async #withImage(image: string, from: Member): Promise<Member | undefined> {
    if (this.#copiedImages.has(image) || this.#copiedImages.size === maxImages) return undefined
    this.#copiedImages.add(image)
    const outcome = await this.#options.replicateImage(from.id, image).catch(() => undefined)
    if (outcome === undefined) return undefined
    if (outcome !== 'copied') throw missingImage(outcome.refused, image)
    // The copy may have taken minutes, in which the project may have moved.
    this.#isRelocated = false
    return this.#options.locator.locate(this.#request.projectId, this.#request.part)
  }
}

/** Whether the request can be sent again: its body is not a stream. */
const isRepeatable = ({ request: { method }, body }: ProjectRequest): boolean =>
  method === 'GET' || method === 'HEAD' || body !== undefined

const codeOf = (answer: Response | RelayedAnswer): ErrorCode | undefined =>
  'content' in answer ? (answer.headers[errorHeader] as ErrorCode | undefined) : undefined

/** The image that the compute says it lacks. */
function imageMissingIn(answer: Response | RelayedAnswer): string | undefined {
  const { image } = codeOf(answer) === 'image-missing' ? errorIn(answer) : {}
  return typeof image === 'string' ? image : undefined
}

/** The body of an error, which is always whole. */
function errorIn(answer: Response | RelayedAnswer): { readonly image?: unknown } {
  const isError = 'content' in answer && answer.content instanceof Uint8Array
  return isError ? JSON.parse(new TextDecoder().decode(answer.content)) : {}
}
