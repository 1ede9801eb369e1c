/**
 * Settles like the work, or after `ms` with the result of `late`, or with the error that `late` throws. The work continues then,
 * and its result is ignored.
 */
export function withTimeout<T, L = never>(work: Promise<T>, ms: number, late: () => L): Promise<T | L> {
  return new Promise<T | L>((resolve, reject) => {
    const timer = setTimeout(() => {
      try {
        resolve(late())
      } catch (error) {
        reject(error)
      }
    }, ms)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
