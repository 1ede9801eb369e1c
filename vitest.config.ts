import { defineConfig } from 'vitest/config'

const handlers = { include: ['test/handlers/**/*.test.ts'], globalSetup: ['test/support/setup.ts'], isolate: false }

export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 20_000,
    projects: [
      // The same black-box HTTP tests on the Node server and in real workerd.
      { extends: true, test: { name: 'node', ...handlers } },
      { extends: true, test: { name: 'workerd', ...handlers } },
      // Everything that needs the host itself: processes, sockets, files, emulators.
      { extends: true, test: { name: 'host', include: ['test/{src,node,lab}/**/*.test.ts'] } },
    ],
  },
})
