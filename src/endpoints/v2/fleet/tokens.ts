import { Type } from '@sinclair/typebox'
import { conflict, notFound } from '../../../lib/errors/api-error.ts'
import { AccessToken, AccessTokenCreate, NewAccessToken } from '../../../model/access/access-token.ts'
import { SshKey, SshKeyAdd } from '../../../model/access/ssh-key.ts'
import type { TokenKeys } from '../../../server/auth/token-keys.ts'
import { keyOfToken, type Tokens } from '../../../server/auth/tokens.ts'
import { type Context, created, type Endpoint, endpoint, noContent, ok } from '../../../server/http/endpoint.ts'

const base = '/v2/tokens'
const self = { owner: 'self', tag: 'v2 tokens' } as const
const admin = { ...self, role: 'admin' } as const
const tokenId = Type.String({ minLength: 1, maxLength: 100, description: 'Id of the token' })
const noneHere = 'This service has no tokens: set token, or user and password, in its configuration first'

export const tokenEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: base,
    ...admin,
    summary: 'List the tokens, without their secrets',
    replies: { 200: { description: 'The tokens, the oldest first', schema: Type.Array(AccessToken) } },
    errors: { 404: noneHere },
    handle: async (_, context) => ok(await tokensOf(context).list()),
  }),
  endpoint({
    method: 'POST',
    path: base,
    ...admin,
    summary: 'Create a token; only this response contains its secret',
    description:
      'Clients send a token as `Authorization: Bearer`, or as the password of HTTP Basic with any user. A join token is only for ' +
      'computes that join the fleet.',
    body: AccessTokenCreate,
    replies: { 201: { description: 'The token', schema: NewAccessToken } },
    errors: { 404: noneHere, 409: 'Too many tokens', 507: 'The disk is full' },
    handle: async ({ body }, context) => created(await tokensOf(context).create(body)),
  }),
  endpoint({
    method: 'DELETE',
    path: `${base}/{token_id}`,
    ...admin,
    summary: 'Revoke a token',
    description:
      'Open requests and websockets continue, except feeds that the Durable Object of a Worker serves: those of all projects, and of ' +
      'projects at computes that have joined. Tickets of the token become invalid.',
    params: Type.Object({ token_id: tokenId }),
    replies: {
      204: { description: 'The token is no longer valid; in other processes of the service after 10 s at most' },
    },
    errors: { 404: 'There is no such token, or this service has none', 507: 'The disk is full' },
    async handle({ params }, context) {
      await tokensOf(context).revoke(params.token_id)
      context.tickets.void(keyOfToken(params.token_id))
      return noContent
    },
  }),
  endpoint({
    method: 'POST',
    path: `${base}/{token_id}/ssh_keys`,
    ...admin,
    summary: 'Add a public key to a token: its owner logs in by SSH with the rights of the token',
    params: Type.Object({ token_id: tokenId }),
    body: SshKeyAdd,
    replies: { 201: { description: 'The key', schema: SshKey } },
    errors: {
      404: 'There is no such token, or this service has none',
      409: 'A token has this key already, the token has too many keys, or the service has no SSH',
      507: 'The disk is full',
    },
    handle: async ({ params, body }, context) => created(await keysOf(context).add(params.token_id, body.public_key)),
  }),
  endpoint({
    method: 'DELETE',
    path: `${base}/{token_id}/ssh_keys/{key_id}`,
    ...admin,
    summary: 'Remove a public key from a token; open SSH sessions continue',
    params: Type.Object({
      token_id: tokenId,
      key_id: Type.String({ minLength: 1, maxLength: 100, description: 'The `key_id` of the key' }),
    }),
    replies: { 204: { description: 'Nobody logs in with the key any more' } },
    errors: {
      404: 'The token has no such key, there is no such token, or this service has none',
      409: 'The service has no SSH',
      507: 'The disk is full',
    },
    async handle({ params }, context) {
      await keysOf(context).remove(params.token_id, params.key_id)
      return noContent
    },
  }),
]

function tokensOf({ tokens }: Context): Tokens {
  if (tokens === undefined) throw notFound(noneHere)
  return tokens
}

function keysOf(context: Context): TokenKeys {
  const { keys } = tokensOf(context)
  if (keys === undefined) throw conflict('This gateway has no SSH, so its tokens have no keys: a Worker accepts no TCP')
  return keys
}
