import { defineConfig } from 'vitest/config'
import { unitFiles } from './test/support/unit-files.ts'
import all, { handlers, host, slow, timing } from './vitest.config.ts'

/** Of requests to the app in this process. Those of a kind whose emulator is a program are left out. */
const requests = ['browsers', 'captures', 'computes', 'consoles', 'feeds', 'http', 'images', 'pc', 'ports', 'projects']

/** The inner loop: what starts no service and no emulator. */
export default defineConfig({
  test: {
    ...all.test,
    projects: [
      { extends: true, test: { name: 'unit', ...host, include: unitFiles([...timing, ...slow]) } },
      {
        extends: true,
        test: { name: 'node', ...handlers, include: requests.map((name) => `test/handlers/${name}.test.ts`) },
      },
    ],
  },
})
