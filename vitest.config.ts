import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { hangMs } from './test/support/limits.ts'

export const handlers = {
  include: ['test/handlers/**/*.test.ts'],
  exclude: ['test/**/*.long.test.ts'],
  globalSetup: ['test/support/setup.ts'],
  isolate: false,
}
/** Files with tests of what the Worker is not, or does not have: those go to its app in workerd, too. */
const notByWorker = ['test/handlers/{appliance-vm,computes,http,metrics}.test.ts']
/**
 * Files about nodes of a kind: their fields, states and files, and what is refused of them. All that is said of these by the compute which
 * has them, whoever was asked, so that they run at the Node server alone. At workerd is what a gateway takes part in: bodies, uploads,
 * streams and websockets, errors, limits, who is let in, which compute is asked, the labs that it has itself. Nodes of every kind have the
 * same endpoints: those of pcs, machines and nats are asked there, and some of iou routers.
 */
const ofKinds = ['test/handlers/{dynamips,iou,iou-configs,iou-links,lab-imports,read-only-members}.test.ts']
export const host = {
  globalSetup: ['test/support/bundled.ts'],
  setupFiles: ['test/support/from-bundle.ts'],
  isolate: false,
}

/**
 * Tests that are slow for what they prove, or need many processes: `npm run test:long` has them, so that `npm test` on two cores takes
 * minutes. What they are about has quicker tests beside them.
 */
export const slow = ['test/**/*.long.test.ts', 'test/long/**/*.test.ts']
/** Of what is asked at workerd, the files that are about nodes most of all. */
export const slowAtWorkerd = ['test/handlers/{browsers,captures,iou-fields,machine-emulator,pc,topology}.test.ts']

export default defineConfig({
  test: {
    reporters: ['default', 'test/support/left-out.ts'],
    // As long as only a hang takes, on a busy host too.
    testTimeout: 2 * hangMs,
    hookTimeout: 2 * hangMs,
    // The services that all files share have hundreds of projects to close at the end.
    teardownTimeout: 2 * hangMs,
    expect: { poll: { timeout: hangMs } },
    // Services and keepers of tests are started hundreds of times; half of that is the compilation of the same code.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node-compile') },
    // Tests make much that is garbage at once: a larger space for what is new saves a twentieth of their processor time.
    execArgv: ['--min-semi-space-size=16', '--max-semi-space-size=32'],
    // Most tests wait for processes and clocks most of the time.
    maxWorkers: Math.max(5, Math.ceil(availableParallelism() / 2)),
    projects: [
      // The same black-box HTTP tests on the Node server and, in real workerd, through the gateway's Worker, where that can differ.
      { extends: true, test: { name: 'node', ...handlers } },
      {
        extends: true,
        test: { name: 'workerd', ...handlers, exclude: [...handlers.exclude, ...ofKinds, ...slowAtWorkerd] },
      },
      { extends: true, test: { name: 'app', ...handlers, include: notByWorker } },
      // Everything that needs the host itself: processes, sockets, files, emulators.
      {
        extends: true,
        test: {
          name: 'host',
          ...host,
          include: ['test/{src,node,browser,lab,worker,documents}/**/*.test.ts'],
          exclude: slow,
        },
      },
    ],
  },
})
