import type { Conventions } from '../../labs/lab/conventions.ts'
import type { RelayedAnswer } from '../../lib/http/relayed-answer.ts'
import type { Upgrade } from '../../lib/http/socket.ts'
import type { Endpoint, JsonAnswer } from './endpoint.ts'

/** An answer without the headers that every answer has. */
export type Unfinished = Response | JsonAnswer | RelayedAnswer

/** How the clients of another program speak: what they say is translated before an endpoint gets it, and what it answers after. */
export interface Dialect {
  /** Endpoints that only those clients ask for; one at a known path takes its place. */
  readonly endpoints: readonly Endpoint[]
  /** Whether a request is of such a client. Gateways and the program's own clients are not. */
  speaks(request: Request): boolean
  /** The path in our words. */
  path(path: string): string
  /** Whether clients may send no credentials for a GET of a path in our words (`Access.streamsTo`). */
  isStream(path: string): boolean
  /** The request in our words. 400 for a body that is not JSON, 413 for one that is larger than `limit` bytes. */
  translateRequest(request: Request, endpoint: Endpoint, limit: number): Promise<Request>
  /** An answer of an endpoint in their words. `code`: of an error (`X-Patchbay-Error`). */
  translateAnswer(
    answer: Unfinished,
    endpoint: Endpoint | undefined,
    request: Request,
    code?: string,
  ): Promise<Unfinished>
  /** Whether they know an event with this action in the feed of a project. */
  hears(action: string): boolean
  readonly conventions: Conventions
  /** Websockets of an endpoint in their words. */
  upgrade(upgrade: Upgrade, endpoint: Endpoint, request: Request): Upgrade
}
