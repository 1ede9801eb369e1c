import { defineConfig } from 'vitest/config'
import { hangMs } from './test/support/limits.ts'

/** The second suite: what takes longer than `npm test` may. One file at a time, each with the machine to itself. */
export default defineConfig({
  test: {
    reporters: ['default', 'test/support/left-out.ts'],
    testTimeout: 300_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: hangMs } },
    include: ['test/long/**/*.test.ts'],
    globalSetup: ['test/support/bundled.ts'],
    setupFiles: ['test/support/from-bundle.ts'],
    fileParallelism: false,
  },
})
