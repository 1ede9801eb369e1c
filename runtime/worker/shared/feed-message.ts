import { type Static, Type } from '@sinclair/typebox'
import type { FleetItem } from '../../../src/fleet/events/fleet-feed.ts'
import { sha256, toHex } from '../../../src/lib/crypto/secret.ts'
import type { FeedItem } from '../../../src/model/event.ts'
import type { Load } from '../../../src/model/host.ts'
import type { Env } from './env.ts'
import type { EncodedError } from './rpc-error.ts'

/** The object refuses the feed; it sends nothing after this. */
interface FeedRefusal extends EncodedError {
  readonly kind: 'refused'
}

/** A message of the object to an isolate by the websocket of a feed, as JSON. The first is a ping or a refusal. */
export type FeedMessage = FeedItem | FleetItem | FeedRefusal | { readonly kind: 'load'; readonly load: Load }

/** Close code of a feed whose credential was revoked. */
export const revoked = 4401

/** The header that distinguishes requests of isolates from those of clients. */
export const isolateHeader = 'x-patchbay-isolate'

/** The value of that header, derived from a secret of the Worker. */
export const isolateKey = async ({ FLEET_KEY = '' }: Env): Promise<string> =>
  toHex(await sha256(`feeds for isolates, ${FLEET_KEY}`))

/** The feed that an isolate requests; see `ClientFeed`. */
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
