import { ignore } from './ignore.ts'
import { withTimeout } from './timeout.ts'

/** A Worker may have six simultaneous connections for one request (Cloudflare Workers, limits). */
const defaultLimit = 6

/**
 * Maps items asynchronously, at most `limit` at a time. Rejects with the first failure. `slowMs`: an item that takes longer does not hold up
 * those after it, and does not count for the limit any more.
 */
export async function mapLimit<T, R>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<R>,
  limit = defaultLimit,
  slowMs?: number,
): Promise<R[]> {
  const results: R[] = []
  const slow: Promise<void>[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) {
      const done = work(items[index] as T, index).then((result) => {
        results[index] = result
      })
      if (slowMs === undefined) await done
      else {
        done.catch(ignore('it is awaited here or below'))
        await withTimeout(done, slowMs, () => void slow.push(done))
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
  await Promise.all(slow)
  return results
}
