import { defineConfig } from 'vitest/config'
import all, { host, slow } from './vitest.config.ts'

/** The second suite: what takes longer than `npm test` may. */
export default defineConfig({
  test: {
    ...all.test,
    testTimeout: 300_000,
    hookTimeout: 120_000,
    projects: [
      // One file at a time, each with the machine to itself.
      {
        extends: true,
        test: { name: 'alone', ...host, isolate: true, include: ['test/long/**/*.test.ts'], maxWorkers: 1 },
      },
      { extends: true, test: { name: 'host', ...host, include: slow, maxWorkers: 4, sequence: { groupOrder: 1 } } },
    ],
  },
})
