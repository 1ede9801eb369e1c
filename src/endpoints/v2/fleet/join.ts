import { ApiError, notFound } from '../../../lib/errors/api-error.ts'
import { bearerOf } from '../../../server/access/credentials.ts'
import { requireUpgrade } from '../../../server/feeds/feed.ts'
import { type Endpoint, endpoint } from '../../../server/http/endpoint.ts'

/** Path at which a compute without a reachable address opens its websocket. */
export const joinPath = '/v2/computes/join'

/** 401: the request has no valid join token. */
export const noJoinToken = () =>
  new ApiError(401, 'Authorization: a join token of this service is needed, as Bearer token', {
    headers: { 'WWW-Authenticate': 'Bearer realm="patchbay"', Connection: 'close' },
  })

export const joinEndpoint: Endpoint = endpoint({
  method: 'GET',
  path: joinPath,
  owner: 'self',
  tag: 'v2 computes',
  summary:
    'Join as a compute: `patchbay serve --join` keeps this websocket open, and answers the requests that arrive on it',
  description:
    'Authorization: Bearer, with a join token. src/compute/tunnel/frames.ts describes the protocol. 4403 closes the websocket when the ' +
    'compute is refused, such as when the token belongs to another compute; 4409 when it has joined again, or with another ' +
    'token; 4429 when it has sent more messages than the requests to it and the time allow.',
  websocket: true,
  joins: true,
  replies: { 200: { description: 'The frames of the tunnel', media: 'application/octet-stream' } },
  errors: {
    404: 'No compute can join this service, or the request is not a websocket upgrade',
    429: 'The token, or all computes together, opened too many connections; see Retry-After',
  },
  async handle({ request }, { fleet, upgrade, peer }) {
    if (fleet?.joinTokens === undefined) throw notFound('No compute can join this service')
    const grant = await fleet.joinTokens.check(bearerOf(request) ?? '')
    if (grant === undefined) throw noJoinToken()
    requireUpgrade(request)
    fleet.joinLimit.consume(grant)
    return upgrade(request, {
      open(socket) {
        const end = fleet.tunnels.accept(
          { ...socket, close: (code, reason) => socket.close(code, reason) },
          grant,
          peer.address || undefined,
        )
        socket.onMessage((data) => end.message(data))
        socket.onClose(() => end.closed())
      },
      abandon() {},
    })
  },
})
