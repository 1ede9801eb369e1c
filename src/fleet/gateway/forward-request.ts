import { messageOf } from '../../compute/remote/greeting.ts'
import type { KeyedMutex } from '../../lib/async/keyed-mutex.ts'
import { ApiError, missingImage } from '../../lib/errors/api-error.ts'
import { type ErrorCode, errorHeader } from '../../lib/errors/error-codes.ts'
import type { RelayedAnswer } from '../../lib/http/relayed-answer.ts'
import type { Forwarded } from '../forward/forward.ts'
import { maxImages, type ReplicateImage } from '../images/image-copies.ts'
import { withComputeContext } from '../members/fan-out.ts'
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
  if (!endsProject) return forwardRepeatedly(request, options, caller)
  return options.turns.run(projectId, async () => {
    const answer = await forwardRepeatedly(request, options, caller)
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

async function forwardRepeatedly(
  request: ProjectRequest,
  { locator, replicateImage }: ForwardOptions,
  caller: RequestingCaller,
): Promise<Response | RelayedAnswer> {
  const { projectId, part } = request
  const forwarded = { ...request, caller: caller.caller }
  const brought = new Set<string>()
  const located = locator.locate(projectId, part)
  let member = located instanceof Promise ? await located : located
  let others: Member[] | undefined
  for (let isMoved = false; ; ) {
    caller.noteCompute(member.id)
    const { failedAnswer } = caller.notes
    delete caller.notes.failedAnswer
    let answer: Response | RelayedAnswer
    try {
      answer = failedAnswer?.compute === member.id ? failedAnswer.answer : await member.forward(forwarded)
    } catch (error) {
      throw withComputeContext(error, member)
    }
    const { status } = answer
    if (status < 400) return answer
    // A defect of a compute is not a defect of the gateway.
    if (status === 500) throw new ApiError(502, `The compute ${member.name} failed: ${messageOf(errorIn(answer))}`)
    if (codeOf(answer) === 'no-such-project' && !isMoved) {
      const other = await locator.relocate(projectId, member)
      if (other === undefined || !isRepeatable(request)) return answer
      member = other
      isMoved = true
      continue
    }
    if (part !== undefined && (codeOf(answer) === 'no-such-node' || codeOf(answer) === 'no-such-link')) {
      // A client of the compute interface may have made the node or link on another compute of the lab.
      others ??= await locator.others(projectId, member)
      const next = others.shift()
      if (next === undefined || !isRepeatable(request)) return answer
      member = next
      continue
    }
    const image = imageMissingIn(answer)
    if (image === undefined || !isRepeatable(request) || brought.has(image) || brought.size === maxImages) return answer
    brought.add(image)
    const outcome = await replicateImage(member.id, image).catch(() => undefined)
    if (outcome === undefined) return answer
    if (outcome !== 'brought') throw missingImage(outcome.refused, image)
    member = await locator.locate(projectId, part)
    isMoved = false
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
