/** Computes asked at the same time: a request at the edge may have no more connections under way. */
const maxAtOnce = 6

/** Does something with each, some at a time. */
export async function forEachLimit<T>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) await work(items[index] as T, index)
  }
  await Promise.all(Array.from({ length: Math.min(maxAtOnce, items.length) }, worker))
}
