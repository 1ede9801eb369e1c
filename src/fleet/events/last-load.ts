import { ignore } from '../../lib/async/ignore.ts'
import { type Load, noLoad } from '../../model/host.ts'

/** The load for pings, which must not wait for it: each has the figures that were read after the ping before. */
export function lastLoad(read: () => Promise<Load>): () => Load {
  let last = noLoad
  return () => {
    read().then((now) => {
      last = now
    }, ignore('the ping has the earlier figures'))
    return last
  }
}
