import { ApiError, notFound } from '../../errors/api-error.ts'
import { bearerOf } from '../../http/access/credentials.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { requireUpgrade } from '../../http/feed.ts'

/** Where a compute that no address leads to keeps a websocket open. */
export const joinPath = '/v2/computes/join'

/** 401: the request has no token that lets a compute join. */
export const noJoinToken = () =>
  new ApiError(401, 'Authorization: a join token of this service is needed, as Bearer token', {
    headers: { 'WWW-Authenticate': 'Bearer realm="patchbay"', Connection: 'close' },
  })

export const joinEndpoint: Endpoint = endpoint({
  method: 'GET',
  path: joinPath,
  owner: 'self',
  tag: 'v2 computes',
  summary: 'Join as a compute: `patchbay serve --join` keeps this websocket open, and answers requests that come by it',
  description:
    'Authorization: Bearer, with a join token. What is spoken is described in src/tunnel/frames.ts. 4403 closes it when the ' +
    'compute cannot be taken, such as when the token is that of another; 4409 when it has joined anew, or is connected with another token.',
  websocket: true,
  joins: true,
  replies: { 200: { description: 'The frames of the tunnel', media: 'application/octet-stream' } },
  errors: { 404: 'No compute can join this service, or no websocket was asked for' },
  async handle({ request }, { fleet, upgrade }) {
    if (fleet?.joinTokens === undefined) throw notFound('No compute can join this service')
    const grant = await fleet.joinTokens.check(bearerOf(request) ?? '')
    if (grant === undefined) throw noJoinToken()
    requireUpgrade(request)
    return upgrade(request, {
      open(socket) {
        const end = fleet.tunnels.accept({ ...socket, close: (code, reason) => socket.close(code, reason) }, grant)
        socket.onMessage((data) => end.message(data))
        socket.onClose(() => end.closed())
      },
      abandon() {},
    })
  },
})
