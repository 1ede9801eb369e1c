import { errorHeader, wordOfStatus } from '../../src/errors/words.ts'
import { EdgeRouter } from './edge-router.ts'
import { type Env, missingSetting } from './env.ts'
import { json } from './host.ts'

export { FleetObject } from './fleet-object.ts'
export { ProjectObject } from './project-object.ts'

let edgeRouter: EdgeRouter | undefined

/** The gateway at the edge. Isolates decide who is let in; all state is in one object, which also answers what needs all of it. */
export default {
  async fetch(request, env): Promise<Response> {
    const message = missingSetting(env)
    if (message !== undefined)
      return json(`${JSON.stringify({ message, status: 503 })}\n`, 503, { [errorHeader]: wordOfStatus(503) })
    edgeRouter ??= new EdgeRouter(env)
    return flowing(await edgeRouter.answer(request))
  },
} satisfies ExportedHandler<Env>

/** A stream that must not wait is not compressed on its way: it would be held back until there is enough to compress. */
function flowing(response: Response): Response {
  const { status, headers, body } = response
  if (status === 101 || headers.get('x-accel-buffering') !== 'no' || headers.has('content-encoding')) return response
  const flowing = new Headers(headers)
  flowing.set('Content-Encoding', 'identity')
  return new Response(body, { status, headers: flowing })
}
