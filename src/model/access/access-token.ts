import { type Static, Type } from '@sinclair/typebox'
import { closedSchema, maybe, Name, nullable, objectSchema, oneOf } from '../schema/fields.ts'
import { SshKey } from './ssh-key.ts'

/** The rights of a client; each role includes the roles before it. */
export type Role = Static<typeof Role>
export const Role = oneOf(['read', 'operate', 'admin'], {
  description: 'read: view; operate: run labs and type on consoles; admin: also computes, tokens and the configuration',
})
const Purpose = oneOf(['user', 'join'], {
  description: 'user: for requests; join: for a compute that joins the fleet, and nothing else',
})
const seconds = 365 * 24 * 3600

const Projects = Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
  minItems: 1,
  maxItems: 32,
  description:
    'The projects to which the token is limited: ids, names of labs, or prefixes of names such as `class-*`. Absent: all projects',
})

const most = (what: string, maximum: number) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum, description: `${what}. Absent: no limit` }))

/** What a client with a token may make and run; each lab by itself, as labs of one service may be in processes of their own. */
export type TokenLimits = Static<typeof TokenLimits>
export const TokenLimits = Type.Object(
  {
    max_nodes: most('Most nodes in a lab, switches and the like included', 100_000),
    max_running: most('Most nodes of a lab that run, not counting switches and the like', 100_000),
    max_ram_mb: most('Most memory of the nodes of a lab that run, as their settings say, MB', 100_000_000),
  },
  {
    $id: 'TokenLimits',
    additionalProperties: false,
    description: 'What a client may make and start in each lab; what others have made and started there counts, too',
  },
)

export type AccessToken = Static<typeof AccessToken>
export const AccessToken = objectSchema('AccessToken', 'A credential of a client or of a compute', {
  token_id: Type.String({ description: 'The part of the token between its first two "_"' }),
  name: Type.String(),
  role: Type.Union(Role.anyOf, {
    description: 'The rights of a client with the token; has no meaning for a join token',
  }),
  purpose: Purpose,
  compute_id: Type.Optional(
    Type.String({
      description: 'The only compute that may join with the token: named at its creation, or the first that used it',
    }),
  ),
  projects: Type.Optional(Projects),
  limits: Type.Optional(TokenLimits),
  ssh_keys: Type.Optional(
    Type.Array(SshKey, { description: 'Public keys that log in by SSH with the rights of the token' }),
  ),
  last_characters: Type.String({ description: 'The last four characters of the token, to recognise it' }),
  created_at: Type.String({ description: 'Time in UTC (RFC 3339)' }),
  expires_at: nullable(Type.String({ description: 'Time in UTC (RFC 3339); null: never' })),
})

/** A new token: only the answer to its creation has the secret. */
export const NewAccessToken = Type.Composite(
  [AccessToken, Type.Object({ token: Type.String({ description: 'The token; it is not shown again' }) })],
  { $id: 'NewAccessToken', description: 'A new token, with its secret' },
)

export type AccessTokenCreate = Static<typeof AccessTokenCreate>
export const AccessTokenCreate = closedSchema(
  'AccessTokenCreate',
  'The owner of the token, and its rights. `role` is required, except for join tokens',
  {
    name: Name,
    role: maybe(Role),
    purpose: maybe(Purpose),
    compute_id: maybe(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description: 'For a join token: the only compute that may join with it. Default: the first one that uses it',
      }),
    ),
    projects: maybe(Projects),
    limits: maybe(TokenLimits),
    expires_in_s: maybe(
      Type.Integer({ minimum: 1, maximum: 10 * seconds, description: 'Lifetime, seconds. Default: unlimited' }),
    ),
  },
)

/** The stored record of a token. */
export type TokenRecord = Static<typeof TokenRecord>
export const TokenRecord = Type.Composite([
  AccessToken,
  Type.Object({
    /** SHA-256 of the secret, in hex. */
    hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    /** Whether the token has a signature, which proves it without this record. */
    signed: Type.Optional(Type.Boolean()),
  }),
])
