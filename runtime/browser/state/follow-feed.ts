import { signal } from '@preact/signals'
import type { Patchbay, ServiceLine } from '../../../src/client/patchbay.ts'
import { pause } from '../../../src/lib/async/pause.ts'
import { notifyError } from './notices.ts'
import { isOutage } from './outage.ts'

/** Time between two tries to read a list, ms. */
const retryMs = 2000

/** Whether the service of the list that is shown does not answer. */
export const isAway = signal(false)

interface Following {
  readonly signal: AbortSignal
  /** Reads the whole list. */
  readonly read: () => Promise<void>
  /** Applies an event since then. */
  readonly apply: (line: ServiceLine) => void
}

/**
 * Keeps a list up to date by the feed of the service, until the signal aborts. It never rejects: other failures than those of the connection
 * are shown, and all are tried again.
 */
export async function followFeed(client: Patchbay, { signal: over, read, apply }: Following): Promise<void> {
  const onLost = (error: unknown) => {
    isAway.value = error !== undefined
  }
  while (!over.aborted) {
    try {
      let isRead = false
      for await (const line of client.feed({ signal: over, onLost })) {
        // The first line says that the feed has begun: events from now on wait in it while the list is read.
        if (!isRead || line.action === 'resync') await read()
        isRead = true
        isAway.value = false
        apply(line)
      }
    } catch (error) {
      if (over.aborted) break
      if (isOutage(error)) onLost(error)
      else notifyError(error)
    }
    await pause(retryMs, over)
  }
  isAway.value = false
}
