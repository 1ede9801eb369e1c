import { performance } from 'node:perf_hooks'

/** How long it took, ms. */
export async function timed(run: () => unknown): Promise<number> {
  const began = performance.now()
  await run()
  return performance.now() - began
}

/** How long each took, one after the other, ms. */
export async function each<T>(items: readonly T[], run: (item: T) => unknown): Promise<number[]> {
  const times: number[] = []
  for (const item of items) times.push(await timed(() => run(item)))
  return times
}
