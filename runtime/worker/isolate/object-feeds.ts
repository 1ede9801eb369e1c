import { type FeedSource, type ServiceEvent, withFleet } from '../../../src/fleet/events/fleet-feed.ts'
import { seqOf } from '../../../src/fleet/events/member-feed.ts'
import { Subscriber } from '../../../src/fleet/events/subscriber.ts'
import { onAbort } from '../../../src/lib/async/abort.ts'
import { type ApiError, retryLater } from '../../../src/lib/errors/api-error.ts'
import type { FeedItem } from '../../../src/model/event.ts'
import { noLoad } from '../../../src/model/host.ts'
import type { Env } from '../shared/env.ts'
import { type FeedMessage, isolateHeader, isolateKey, urlOf } from '../shared/feed-message.ts'
import { decodeError } from '../shared/rpc-error.ts'
import { accepted } from '../shared/sockets.ts'

/** Most items that wait for a client that resumes a feed: all stored events arrive at once. */
const maxMissed = 4096

/** Feeds of the object for the clients of this isolate. The object sends events only; the isolate adds the pings. */
export function objectFeeds(object: () => Pick<DurableObjectStub, 'fetch'>, env: Env): FeedSource {
  let key: string | undefined
  return async ({ pings = true, signal, projects, ...feed }) => {
    const wanted = { ...feed, ...(projects !== undefined && { projects: [...projects] }) }
    key ??= await isolateKey(env)
    const headers = { Upgrade: 'websocket', [isolateHeader]: key }
    const response = await object().fetch(urlOf(wanted), { headers })
    const { webSocket } = response
    if (webSocket === null) throw broken()
    const socket = accepted(webSocket)
    const listeners = new Set<(event: ServiceEvent) => void>()
    const most = wanted.since === undefined ? undefined : maxMissed
    let load = noLoad
    let lastSeq = 0
    let isBegun = false
    const subscriber = new Subscriber({
      ping: (seq = lastSeq) => ({ kind: 'ping', load, seq }),
      pings,
      onLeft: () => socket.close(1000),
      onDropped() {},
    })
    const deliver = (item: FeedItem) => {
      if (item.kind === 'ping') load = item.load
      lastSeq = seqOf(item) ?? lastSeq
      // Only the first ping is passed on: an object sends another one when it wakes from hibernation.
      if (item.kind !== 'ping' || !isBegun) subscriber.push(item, most)
      isBegun = true
    }
    const begun = new Promise<void>((resolve, reject) => {
      socket.onMessage((data) => {
        const message = JSON.parse(String(data)) as FeedMessage
        if (message.kind === 'fleet') for (const listener of listeners) listener(message.event)
        else if (message.kind === 'load') load = message.load
        else if (message.kind === 'refused') reject(decodeError(message))
        else deliver(message)
        if (isBegun) resolve()
      })
      socket.onClose((code) => {
        const failure = new Error(`The feed of the object ended (${code})`)
        subscriber.finish(code === 1000 ? undefined : failure)
        reject(broken())
      })
    })
    onAbort(signal, () => subscriber.leave())
    if (signal.aborted) subscriber.leave()
    const fleet = {
      listen(listener: (event: ServiceEvent) => void) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    }
    await begun
    return wanted.computes ? withFleet(subscriber.stream, fleet, signal) : subscriber.stream
  }
}

/** The object ended or restarted. */
const broken = (): ApiError => retryLater(503, 'The feed could not be opened; try again', 1)
