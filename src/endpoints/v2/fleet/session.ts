import { badRequest } from '../../../lib/errors/api-error.ts'
import type { Identity } from '../../../model/access/identity.ts'
import { type SessionCreate, SessionCreate as SessionCreateSchema, SessionView } from '../../../model/session.ts'
import { type Context, type Endpoint, endpoint } from '../../../server/http/endpoint.ts'

/** Path at which browsers log in. */
export const sessionPath = '/v2/session'
const self = { owner: 'self', tag: 'v2 session' } as const
const noneHere = 'This service has no sessions: no credentials are configured, so none are needed'

export const sessionEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'POST',
    path: sessionPath,
    ...self,
    public: true,
    role: 'read',
    summary: 'Log in: afterwards a cookie replaces the credentials',
    description:
      'For pages of this service. The session is in the organization that the header X-Patchbay-Organization names, or else in the organization of the credentials. The cookie is HttpOnly and SameSite=Strict, and also opens websockets, feeds and downloads. The ' +
      'session ends after 12 hours, with the token, or when the configured credentials change.',
    body: SessionCreateSchema,
    replies: { 201: { description: 'The session; its cookie is in Set-Cookie', schema: SessionView } },
    errors: { 404: noneHere },
    async handle({ body, request }, context) {
      const { session, cookie } = await context.admission.logIn(credentialsIn(body), request, context.peer)
      return sessionView(context, session, 201, { 'Set-Cookie': cookie })
    },
  }),
  endpoint({
    method: 'GET',
    path: sessionPath,
    ...self,
    scope: 'shared',
    summary: 'The name and the role of the client, and the end of its session',
    replies: { 200: { description: 'The client', schema: SessionView } },
    handle: (_, context) =>
      sessionView(context, { ...context.identity, endsAt: context.identity.session?.endsAt }, 200, {}),
  }),
  endpoint({
    method: 'DELETE',
    path: sessionPath,
    ...self,
    public: true,
    role: 'read',
    summary: 'Log out: the session of the cookie ends, and copies of the cookie become invalid',
    description: 'Without a session nothing happens. Open requests and websockets continue.',
    replies: {
      204: {
        description: 'The session has ended, in other processes after 10 s at most, and the browser deletes the cookie',
      },
    },
    errors: { 404: noneHere, 507: 'The disk is full: the session has ended, but only until the service restarts' },
    async handle({ request }, { admission, peer, tickets }) {
      const { cookie } = await admission.logOut(request, peer, ({ id }) => tickets.void(id))
      return new Response(null, { status: 204, headers: { 'Set-Cookie': cookie, 'Cache-Control': 'no-store' } })
    },
  }),
]

type Given = { readonly token: string } | { readonly user: string; readonly password: string }

/** 400 for a body with neither or both. */
function credentialsIn({ token, user, password }: SessionCreate): Given {
  if (token !== undefined && user === undefined && password === undefined) return { token }
  if (token === undefined && user !== undefined && password !== undefined) return { user, password }
  throw badRequest('body: expected either token, or user and password')
}

function sessionView(
  { json, identity, startLine }: Context,
  {
    name,
    role,
    organization,
    projects,
    endsAt,
  }: Pick<Identity, 'name' | 'role' | 'organization' | 'projects'> & { readonly endsAt: number | undefined },
  status: number,
  headers: Record<string, string>,
): Response {
  const view: SessionView = {
    name,
    role,
    ...(organization !== undefined && { organization }),
    ...(projects !== undefined && { projects: [...projects] }),
    // Without credentials everybody is the administrator. A log-in has some, and the identity of a public endpoint.
    ...(startLine !== undefined && identity.key === '' && identity.role === 'admin' && { start_line: startLine() }),
    expires_at: endsAt === undefined ? null : new Date(endsAt).toISOString(),
  }
  return json(`${JSON.stringify(view)}\n`, status, { ...headers, 'Cache-Control': 'no-store' })
}
