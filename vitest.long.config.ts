import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import all, { handlers, host, slow, slowAtWorkerd } from './vitest.config.ts'

/** Tests that measure processors: they have the machine to themselves. */
const alone = ['test/long/{cpu-limit,dynamips-measurements}.test.ts']
/** Tests that start as many emulators at once as a host has room for: whatever ran beside them would wait for minutes. */
const crowded = ['test/long/vpcs-ports.test.ts']
/** Tests of how long something takes: they run when all others have ended, and mostly wait. */
const timing = ['test/node/dataplane/switch/impairment-timing.long.test.ts', 'test/lab/impairment.long.test.ts']

/** What takes longest, mostly by waiting: begun last, one of them would keep the run from its end while a processor idles. */
const longest = [
  ...['long/gallery', 'long/torture', 'long/worker-stop-time', 'long/page-gateways', 'long/container'],
  ...['long/hibernation', 'long/guests', 'long/page-screens', 'long/debian-packages', 'long/archives'],
  ...['long/running-snapshots', 'drivers/nat/nat', 'long/page-consoles', 'long/deletion', 'long/packaging'],
  ...['worker/lying-archives', 'labfile/hostile-files', 'long/upgrade', 'long/drain-kills', 'long/page-faults'],
  ...['worker/archives', 'long/links-between-sites', 'long/page-class', 'long/page-node-types', 'long/sandboxed-lab'],
  ...['worker/hanging-computes', 'worker/late-answers', 'long/hanging-pc', 'long/sandbox'],
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex((it) => moduleId.includes(`/${it}.`))
      return at < 0 ? longest.length : at
    }
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b))
  }
}

/** The second suite: what takes longer than `npm test` may. */
export default defineConfig({
  test: {
    ...all.test,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    sequence: { sequencer: LongestFirst },
    projects: [
      { extends: true, test: { name: 'alone', ...host, include: alone, maxWorkers: 2 } },
      {
        extends: true,
        test: {
          name: 'host',
          ...host,
          include: slow,
          exclude: [...alone, ...timing, ...crowded, 'test/handlers/**'],
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'node',
          ...handlers,
          include: ['test/handlers/**/*.long.test.ts'],
          exclude: [],
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: 'workerd', ...handlers, include: slowAtWorkerd, sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        test: { name: 'timing', ...host, include: timing, maxWorkers: 3, sequence: { groupOrder: 2 } },
      },
      {
        extends: true,
        test: { name: 'crowded', ...host, include: crowded, maxWorkers: 1, sequence: { groupOrder: 3 } },
      },
    ],
  },
})
