import { ApiError } from '../errors.ts'
import type { HostAgent, ImageAgent, UploadProgress } from '../host-agent.ts'
import { type Everyone, noCompute } from './everyone.ts'
import { shared } from './shared-stream.ts'

/**
 * Images are wanted wherever a lab may be placed: what is stored goes to every compute that is connected, what is read comes
 * from the first that has it. Of one that joins later the images are its own business, or that of `/v2/computes/{id}/...`.
 */
export function gatewayImages(everyone: Everyone, present: () => Promise<readonly HostAgent[]>): ImageAgent {
  return {
    list: (kind) =>
      everyone.union(
        ({ images }) => images.list(kind),
        ({ path }) => path,
      ),
    read: (kind, name, options) =>
      everyone.first(
        ({ images }) => images.read(kind, name, options),
        ({ extra }) => extra.image !== undefined,
      ),
    async write(kind, name, content, options) {
      const agents = await present()
      const [first, ...others] = agents
      if (first === undefined) throw noCompute()
      if (others.length === 0) return first.images.write(kind, name, content, options)
      const streams = shared(content, agents.length)
      const ends = await Promise.allSettled(
        agents.map((agent, index) => agent.images.write(kind, name, streams[index] as typeof content, options)),
      )
      return least(ends.map(settled))
    },
    async progress(kind, name, total) {
      const said = await everyone.order(({ images }) => images.progress(kind, name, total))
      return least(said.map(({ value }) => value))
    },
    diskTools: () =>
      everyone.union(
        ({ images }) => images.diskTools(),
        ({ path }) => path,
      ),
    async createDisk(kind, input) {
      await everyone.order(({ images }) => images.createDisk(kind, input))
    },
    async extendDisk(kind, input) {
      await everyone.order(({ images }) => images.extendDisk(kind, input))
    },
  }
}

/** How far all are. */
const least = (all: readonly UploadProgress[]): UploadProgress => ({
  received: Math.min(...all.map(({ received }) => received)),
  done: all.every(({ done }) => done),
})

function settled<T>(end: PromiseSettledResult<T>): T {
  if (end.status === 'fulfilled') return end.value
  throw end.reason instanceof ApiError
    ? end.reason
    : new ApiError(502, 'A compute did not take the image', { cause: end.reason })
}
