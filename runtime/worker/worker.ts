import { codeOfStatus, errorHeader } from '../../src/lib/errors/error-codes.ts'
import { serviceHeaders } from '../../src/server/finish.ts'
import { EdgeRouters } from './isolate/edge-routers.ts'
import { type Env, missingSetting } from './shared/env.ts'
import { trackBody } from './shared/fixed-length-bodies.ts'
import { json } from './shared/host.ts'
import { isKeptImage, keptImage } from './shared/image-bucket.ts'

export { ComputeObject } from './compute/compute-object.ts'
export { DirectoryObject } from './directory/directory-object.ts'
export { ProjectObject } from './lab/project-object.ts'

let edgeRouters: EdgeRouters | undefined

/** The gateway on Cloudflare. Isolates authenticate requests, and answer what they can; `DirectoryObject` has the state of an organization. */
export default {
  async fetch(request, env): Promise<Response> {
    // An isolate has the same settings as long as it lives.
    if (edgeRouters === undefined) {
      const message = missingSetting(env)
      if (message !== undefined) return refusal(message, 503)
      edgeRouters = new EdgeRouters(env)
    }
    if (hasTwoLengths(request)) return refusal('A request has Content-Length or Transfer-Encoding, not both', 400)
    const image = isKeptImage(request, env) ? await keptImage(request, env) : undefined
    if (image !== undefined) return image
    trackBody(request)
    return edgeRouters.answer(request)
  },
} satisfies ExportedHandler<Env>

/** The answer before there is an app. */
const refusal = (message: string, status: number): Response =>
  json(`${JSON.stringify({ message, status })}\n`, status, {
    ...serviceHeaders(PATCHBAY_VERSION, crypto.randomUUID().slice(0, 8)),
    [errorHeader]: codeOfStatus(status),
  })

/**
 * Whether the length of the body is said in two ways. Of these Transfer-Encoding counts (RFC 9112, 6.3), and workerd goes by it; what is behind
 * here takes Content-Length for the length of what comes. Node.js refuses such requests, too.
 */
const hasTwoLengths = ({ headers }: Request): boolean =>
  headers.has('content-length') && headers.has('transfer-encoding')
