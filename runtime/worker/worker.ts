import { type Env, missing } from './env.ts'
import { json } from './host.ts'

export { FleetObject } from './fleet-object.ts'

/** The gateway at the edge. All its state is in one object. */
export default {
  async fetch(request, env): Promise<Response> {
    const message = missing(env)
    if (message !== undefined) return json(`${JSON.stringify({ message, status: 503 })}\n`, 503, {})
    return env.FLEET.getByName('fleet').fetch(request)
  },
} satisfies ExportedHandler<Env>
