import type { Patchbay, ServiceLine } from '../../../src/client/patchbay.ts'
import { pause } from '../../../src/lib/async/pause.ts'
import { notifyError } from './notices.ts'

/** Time between two tries to read a list, ms. */
const retryMs = 2000

interface Following {
  readonly signal: AbortSignal
  /** Reads the whole list. */
  readonly read: () => Promise<void>
  /** Applies an event since then. */
  readonly apply: (line: ServiceLine) => void
}

/** Keeps a list up to date by the feed of the service, until the signal aborts. Failures are shown, and tried again; it never rejects. */
export async function followFeed(client: Patchbay, { signal, read, apply }: Following): Promise<void> {
  while (!signal.aborted) {
    try {
      let isRead = false
      for await (const line of client.feed({ signal })) {
        // The first line says that the feed has begun: events from now on wait in it while the list is read.
        if (!isRead || line.action === 'resync') await read()
        isRead = true
        apply(line)
      }
    } catch (error) {
      if (!signal.aborted) notifyError(error)
    }
    await pause(retryMs, signal)
  }
}
