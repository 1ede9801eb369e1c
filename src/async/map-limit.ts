/** A Worker may have six simultaneous connections for one request (Cloudflare Workers, limits). */
const defaultLimit = 6

/** Maps items asynchronously, at most `limit` at a time. Rejects with the first failure. */
export async function mapLimit<T, R>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<R>,
  limit = defaultLimit,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) results[index] = await work(items[index] as T, index)
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
  return results
}
