import { Joiner } from '../../runtime/node/service/join/joiner.ts'

/**
 * Joins a gateway as a compute that says it has this id; resolves with the reason for which it is refused. It does not try again: that would
 * use up the connections that the token may open, and the compute to which it belongs could not come back for minutes.
 */
export function refusedJoiner(url: string, token: string, compute_id: string): Promise<string> {
  return new Promise((resolve) => {
    const quiet = () => {}
    const log = {
      debug: quiet,
      info: quiet,
      warn: quiet,
      error(details: object) {
        // It sets its timer after it has said this.
        queueMicrotask(() => void joiner.close())
        resolve((details as { reason: string }).reason)
      },
    }
    const who = { version: '0.1.0', compute_id, name: compute_id }
    const fetch = async () => Response.json({ message: 'not this one', status: 404 }, { status: 404 })
    const joiner = new Joiner({ url, token, who, fetch, log, waits: { first: 10, longest: 100, steadyMs: 60_000 } })
  })
}
