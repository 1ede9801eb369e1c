import { basename, join } from 'node:path'
import { inject, vi } from 'vitest'

// What runs in a test process itself starts keepers, PCs and threads from the bundle too.
vi.mock('../../runtime/node/os/programs/own-program.ts', () => ({
  programArguments: (_: URL, bundle: URL) => [join(inject('bundled'), basename(bundle.pathname))],
}))
