import { defineConfig } from 'vitest/config'
import all, { host, slow } from './vitest.config.ts'

/** Tests that measure, load the machine or look at all of it: they have it to themselves. */
const alone = [
  'test/long/{cpu-limit,debian-packages,deletion,dynamips-measurements,dynamips-nodes,guests,hanging-pc,hibernation}.test.ts',
  'test/long/{survival,torture}.test.ts',
]

/** The second suite: what takes longer than `npm test` may. */
export default defineConfig({
  test: {
    ...all.test,
    testTimeout: 300_000,
    hookTimeout: 120_000,
    projects: [
      { extends: true, test: { name: 'alone', ...host, isolate: true, include: alone, maxWorkers: 1 } },
      {
        extends: true,
        test: {
          name: 'host',
          ...host,
          include: [...slow, 'test/long/**/*.test.ts'],
          exclude: alone,
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
