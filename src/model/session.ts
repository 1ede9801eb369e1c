import { type Static, Type } from '@sinclair/typebox'
import { nullable } from '../schema/fields.ts'
import { Role } from './access-token.ts'

/** Who asks. */
export type SessionView = Static<typeof SessionView>
export const SessionView = Type.Object(
  {
    name: Type.String({ description: 'Of the token, or the user' }),
    role: Role,
    expires_at: nullable(
      Type.String({ description: 'When the session ends (RFC 3339, UTC); null for a request without a session' }),
    ),
  },
  { $id: 'Session', description: 'Who asks, and until when without another log-in' },
)

export type SessionCreate = Static<typeof SessionCreate>
export const SessionCreate = Type.Object(
  {
    token: Type.Optional(
      Type.String({ minLength: 1, maxLength: 4096, description: 'A token; or `user` and `password`' }),
    ),
    user: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    password: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
  },
  { $id: 'SessionCreate', additionalProperties: false, description: 'Credentials: a token, or user and password' },
)
