/** Calls `run` once when the signal aborts, at once if it is aborted already. The result removes the listener. */
export function onAbort(signal: AbortSignal | undefined, run: () => void): () => void {
  if (signal === undefined) return () => {}
  if (signal.aborted) {
    run()
    return () => {}
  }
  signal.addEventListener('abort', run, { once: true })
  return () => signal.removeEventListener('abort', run)
}

/** Resolves when the signal aborts. */
export const aborted = (signal: AbortSignal): Promise<void> => new Promise((resolve) => onAbort(signal, resolve))

/** Settles like the work, or rejects with the signal's reason when the signal aborts first. The work continues then. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal?.reason))
    work.then(resolve, reject).finally(forget)
  })
}
