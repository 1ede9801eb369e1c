/** Runs something once when the signal aborts, at once when it has. Call the result to have it forgotten. */
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

/** Settles like the work, or rejects with the reason of the signal when that aborts first. The work goes on then. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal?.reason))
    work.then(resolve, reject).finally(forget)
  })
}
