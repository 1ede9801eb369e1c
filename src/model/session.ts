import { type Static, Type } from '@sinclair/typebox'
import { Role } from './access/access-token.ts'
import { closedSchema, nullable, objectSchema } from './schema/fields.ts'

export type SessionView = Static<typeof SessionView>
export const SessionView = objectSchema('Session', 'The client, and the end of its session', {
  name: Type.String({ description: 'Name of the token or the user' }),
  role: Role,
  organization: Type.Optional(
    Type.String({
      description: 'The organization in which the client acts; absent: `default`, or a service without organizations',
    }),
  ),
  projects: Type.Optional(
    Type.Array(Type.String(), {
      description: 'The only projects that it is for: ids, names, and prefixes of names that end with `*`; absent: all',
    }),
  ),
  start_line: Type.Optional(
    Type.String({
      description:
        'The command that starts the service again where others reach it; absent where it asks for credentials already',
    }),
  ),
  expires_at: nullable(
    Type.String({ description: 'When the session ends (RFC 3339, UTC); null for a request without a session' }),
  ),
})

export type SessionCreate = Static<typeof SessionCreate>
export const SessionCreate = closedSchema('SessionCreate', 'Credentials: a token, or user and password', {
  token: Type.Optional(
    Type.String({ minLength: 1, maxLength: 4096, description: 'A token; or `user` and `password`' }),
  ),
  user: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  password: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
})
