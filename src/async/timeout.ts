/**
 * Settles like the work, or after `ms` as `late` does: with its value, or with the error that it throws. The work goes on then,
 * and what becomes of it is ignored.
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
