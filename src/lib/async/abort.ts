/** What is called when a signal aborts. */
interface Calls {
  readonly all: Set<{ run: () => void }>
  readonly callAll: () => void
}

/** One listener of a signal serves all calls: hundreds of nodes wait on that of a job, and Node 20 takes more than ten listeners for a leak. */
const callsAt = new WeakMap<AbortSignal, Calls>()

function listen(signal: AbortSignal): Calls {
  const all: Calls['all'] = new Set()
  const callAll = () => {
    callsAt.delete(signal)
    for (const call of all) {
      try {
        call.run()
      } catch (error) {
        // As of a listener: the others are called nevertheless.
        queueMicrotask(() => {
          throw error
        })
      }
    }
  }
  const calls = { all, callAll }
  callsAt.set(signal, calls)
  signal.addEventListener('abort', callAll, { once: true })
  return calls
}

/** Calls `run` once when the signal aborts, at once if it is aborted already. The result cancels that. */
export function onAbort(signal: AbortSignal | undefined, run: () => void): () => void {
  if (signal === undefined) return () => {}
  if (signal.aborted) {
    run()
    return () => {}
  }
  const { all, callAll } = callsAt.get(signal) ?? listen(signal)
  const call = { run }
  all.add(call)
  return () => {
    if (!all.delete(call) || all.size > 0) return
    signal.removeEventListener('abort', callAll)
    if (!signal.aborted) callsAt.delete(signal)
  }
}

/** Resolves when the signal aborts. */
export const aborted = (signal: AbortSignal): Promise<void> => new Promise((resolve) => onAbort(signal, resolve))

/** Settles like the work, or resolves when the signal aborts first. The work continues then. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => resolve(undefined))
    work.then(resolve, reject).finally(forget)
  })
}

/** Settles like the work, or rejects with the signal's reason when the signal aborts first. The work continues then. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal?.reason))
    work.then(resolve, reject).finally(forget)
  })
}
