import { type Static, Type } from '@sinclair/typebox'
import { closedSchema, maybe, Name, nullable, objectSchema, oneOf } from '../schema/fields.ts'

/** What somebody may do; each one may also do what those before it may. */
export type Role = Static<typeof Role>
export const Role = oneOf(['read', 'operate', 'admin'], {
  description: 'read: look; operate: run labs and type on consoles; admin: also computes, tokens and the configuration',
})
const Purpose = oneOf(['user', 'join'], {
  description: 'user: for requests; join: for a compute that joins the fleet, and nothing else',
})
const seconds = 365 * 24 * 3600

/** A token as it is shown: everything but its secret. */
export type AccessToken = Static<typeof AccessToken>
export const AccessToken = objectSchema('AccessToken', 'A token that clients or computes come in with', {
  token_id: Type.String({ description: 'The part of the token between its first two "_"' }),
  name: Type.String(),
  role: Type.Union(Role.anyOf, { description: 'What may be done with it; of no meaning for a join token' }),
  purpose: Purpose,
  compute_id: Type.Optional(
    Type.String({
      description: 'The only compute that may join with it: the one it was made for, or that used it first',
    }),
  ),
  last_characters: Type.String({ description: 'The last four characters of the token, to know it again' }),
  created_at: Type.String({ description: 'Time in UTC (RFC 3339)' }),
  expires_at: nullable(Type.String({ description: 'Time in UTC (RFC 3339); null: never' })),
})

/** A token at the only time when it is shown. */
export const NewAccessToken = Type.Composite(
  [AccessToken, Type.Object({ token: Type.String({ description: 'The token; it is not shown again' }) })],
  { $id: 'NewAccessToken', description: 'A new token, with its secret' },
)

export type AccessTokenCreate = Static<typeof AccessTokenCreate>
export const AccessTokenCreate = closedSchema(
  'AccessTokenCreate',
  'Who the token is for, and what may be done with it. `role` is needed, but for join tokens',
  {
    name: Name,
    role: maybe(Role),
    purpose: maybe(Purpose),
    compute_id: maybe(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description: 'Of a join token: the only compute that may join with it. Default: the first that does',
      }),
    ),
    expires_in_s: maybe(
      Type.Integer({
        minimum: 1,
        maximum: 10 * seconds,
        description: 'How long it is good, seconds. Default: for ever',
      }),
    ),
  },
)

/** A token as it is kept. */
export type TokenRecord = Static<typeof TokenRecord>
export const TokenRecord = Type.Composite([
  AccessToken,
  Type.Object({
    /** SHA-256 of the secret, in hex. */
    hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    /** Whether the token is a signed one, which is known without this record. */
    signed: Type.Optional(Type.Boolean()),
  }),
])
