/**
 * How long a test waits for what must come, ms: as long as only a hang takes, also on a host that is busy with something else. A
 * test that ends sooner does so by what it waits for.
 */
export const hangMs = 60_000
