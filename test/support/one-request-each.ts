/** Connections of one request each: undici keeps none alive without pipelining (undici docs, class Client). */
export const oneRequestEach = new (agentClass())({ pipelining: 0 })

/** The class of the dispatcher of `fetch`, which Node does not export: it is there as soon as `fetch` was loaded. */
function agentClass(): new (options: { pipelining: number }) => object {
  new Headers()
  return (globalThis as unknown as Record<symbol, object>)[Symbol.for('undici.globalDispatcher.1')]
    ?.constructor as never
}
