import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { hangMs } from './test/support/limits.ts'

export const handlers = {
  include: ['test/handlers/**/*.test.ts'],
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
const ofKinds = ['test/handlers/{dynamips,hypervisor,iou,iou-configs,iou-links,lab-imports,read-only-members}.test.ts']
export const host = {
  globalSetup: ['test/support/bundled.ts'],
  setupFiles: ['test/support/from-bundle.ts'],
  isolate: false,
}

/** Tests of how long something takes: they run when all others have ended, and mostly wait. */
export const timing = ['test/node/switch/impairment-timing.test.ts', 'test/lab/impairment.test.ts']

/**
 * Tests of guests, emulators, browsers and other versions that need many processes: `npm run test:long` has them, so that `npm test` on two
 * cores takes minutes. What they are about has quicker tests beside them.
 */
export const slow = [
  'test/lab/{docs,foreign-page,held-pc,hypervisor-virtualbox,routers-lines}.test.ts',
  'test/node/appliance-vm/libvirt.test.ts',
  'test/node/cli/{gateway,images}.test.ts',
  'test/node/gateway/{drain,image-copies,kept-archives,mixed-versions}.test.ts',
  'test/node/images/executables.test.ts',
  'test/node/kinds/dynamips/{routers,service}.test.ts',
  'test/node/kinds/hypervisor/{libvirt,libvirt-clones}.test.ts',
  'test/node/kinds/iou/{endings,licences}.test.ts',
  'test/node/kinds/machine-emulator/{confined-tool,machine-disks,saved-state}.test.ts',
  'test/node/kinds/nat/nat.test.ts',
  'test/node/kinds/sixth-kind.test.ts',
  'test/node/labs/stop-time.test.ts',
  'test/node/nodes/unknown.test.ts',
  'test/node/organizations-apart.test.ts',
  'test/node/projects/deletion.test.ts',
  'test/node/switch/device-offload.test.ts',
  'test/src/labfile/hostile-files.test.ts',
  'test/worker/{gateway,image-copies,image-push,kept-archives,kept-images,lab-copies,lab-objects,labs,lying-archives,organizations-apart,upgrade}.test.ts',
]

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
      { extends: true, test: { name: 'workerd', ...handlers, exclude: ofKinds } },
      { extends: true, test: { name: 'app', ...handlers, include: notByWorker } },
      // Everything that needs the host itself: processes, sockets, files, emulators.
      {
        extends: true,
        test: {
          name: 'host',
          ...host,
          include: ['test/{src,node,browser,lab,worker,documents}/**/*.test.ts'],
          exclude: [...timing, ...slow],
        },
      },
      {
        extends: true,
        test: { name: 'timing', ...host, include: timing, maxWorkers: 3, sequence: { groupOrder: 1 } },
      },
    ],
  },
})
