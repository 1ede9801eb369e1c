import { isRefusal } from '../../compute/remote/transport.ts'
import { onAbort } from '../../lib/async/abort.ts'
import type { RelayedAnswer } from '../../lib/http/relayed-answer.ts'
import type { Socket, Upgrade } from '../../lib/http/socket.ts'
import { type Caller, headersFor } from '../../model/access/caller.ts'
import type { Fleet } from '../pool/fleet.ts'
import { relayAnswer } from './forward.ts'

export interface BridgeOptions {
  readonly id: string
  readonly request: Request
  /** Of the compute, with the query. */
  readonly path: string
  readonly caller: Caller
  readonly upgrade: Upgrade
}

/** Forwards a websocket to a compute. */
export async function bridge(
  fleet: Fleet,
  { id, request, path, caller, upgrade }: BridgeOptions,
): Promise<Response | RelayedAnswer> {
  const over = new AbortController()
  const leave = () => over.abort(request.signal.reason)
  // After the upgrade only the end of the websocket counts.
  const stay = onAbort(request.signal, leave)
  try {
    const opened = await fleet.openSocket(id, { path, headers: headersFor(caller), signal: over.signal })
    if (isRefusal(opened)) return await relayAnswer(opened, fleet.at(id).name)
    return upgrade(request, {
      open: (socket) => joinSockets(socket, opened),
      abandon: () => opened.close(1001, 'The client disconnected'),
    })
  } finally {
    stay()
  }
}

/** Relays the messages of two websockets, and the end of either. */
export function joinSockets(client: Socket, compute: Socket): void {
  relay(client, compute)
  relay(compute, client)
  client.onClose(() => compute.close(1000))
  compute.onClose((code) => {
    if (code === 1006) client.close(1011, 'The compute disconnected')
    else client.close(isSendable(code) ? code : 1000)
  })
  compute.resume?.()
}

/** A slow reader delays only its own websocket. */
function relay(from: Socket, to: Socket): void {
  from.onMessage((data) => {
    to.send(data)
    if (from.pause === undefined || from.resume === undefined) return
    from.pause()
    const go = () => from.resume?.()
    to.drained().then(go, go)
  })
}

/** Some codes are for reports only and must not be sent (RFC 6455, 7.4.1). */
const isSendable = (code: number): boolean =>
  (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || code >= 3000
