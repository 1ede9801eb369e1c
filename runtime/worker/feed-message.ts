import { type Static, Type } from '@sinclair/typebox'
import { sha256, toHex } from '../../src/auth/secret.ts'
import type { ErrorWord } from '../../src/errors/words.ts'
import type { FleetItem } from '../../src/events/fleet-feed.ts'
import type { FeedItem } from '../../src/model/event.ts'
import type { Load } from '../../src/model/host.ts'
import type { Env } from './env.ts'

/** The feed was not opened; nothing follows. */
export interface FeedRefusal {
  readonly kind: 'refused'
  readonly status: number
  readonly message: string
  readonly word: ErrorWord
  readonly headers: Readonly<Record<string, string>>
}

/** What the object tells an isolate by the websocket of a feed, as JSON: first a ping, or a refusal. */
export type FeedMessage = FeedItem | FleetItem | FeedRefusal | { readonly kind: 'load'; readonly load: Load }

/** How the websocket of a feed was closed whose credential is not good any more. */
export const revoked = 4401

/** The header by which the object knows that an isolate asks, and not a client. */
export const isolateHeader = 'x-patchbay-isolate'

/** What is said in it: nobody can who does not know the secrets of the Worker. */
export const isolateKey = async ({ FLEET_KEY = '' }: Env): Promise<string> =>
  toHex(await sha256(`feeds for isolates, ${FLEET_KEY}`))

/** What an isolate asks for; see `ClientFeed`. */
export type WantedFeed = Static<typeof WantedFeed>
export const WantedFeed = Type.Object({
  projectId: Type.Optional(Type.String()),
  since: Type.Optional(Type.Integer()),
  computes: Type.Boolean(),
  key: Type.String(),
  projects: Type.Optional(Type.Array(Type.String())),
})

const where = 'http://object/feeds'

export function urlOf(wanted: WantedFeed): string {
  return `${where}?${new URLSearchParams({ wanted: JSON.stringify(wanted) })}`
}

export const wantedIn = (url: string): WantedFeed =>
  JSON.parse(new URL(url).searchParams.get('wanted') ?? '{}') as WantedFeed
