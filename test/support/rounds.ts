/**
 * The least that one of some rounds took: a busy host delays single ones. The first that takes less than `enough` is the last.
 * `round` gives what is judged of it, a time or a share of one.
 */
export async function quickest(enough: number, round: () => Promise<number>, rounds = 5): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let count = 0; count < rounds && best >= enough; count++) best = Math.min(best, await round())
  return best
}

/** How long something took, ms. */
export async function took(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await run()
  return performance.now() - start
}
