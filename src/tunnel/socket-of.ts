import type { Socket } from '../http/socket.ts'
import type { Messages } from './messages.ts'

/** A websocket of a compute, open and paused. */
export function socketOf(messages: Messages): Socket {
  const closing = new Set<(code: number) => void>()
  const receivers: ((data: string | Uint8Array) => void)[] = []
  let code: number | undefined
  messages.pause()
  messages.start({
    message(data) {
      for (const receive of receivers) receive(data)
    },
    closed(theirs) {
      code = theirs
      for (const closed of closing) closed(theirs)
    },
  })
  return {
    send: (data) => messages.send(data),
    close: (theirs, reason) => messages.close(theirs, reason),
    onMessage: (receive) => void receivers.push(receive),
    onClose(closed) {
      const known = code
      if (known === undefined) closing.add(closed)
      else queueMicrotask(() => closed(known))
    },
    drained: () => messages.drained(),
    pause: () => messages.pause(),
    resume: () => messages.resume(),
  }
}
