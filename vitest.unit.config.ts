import { defineConfig } from 'vitest/config'
import { unitFiles } from './test/support/unit-files.ts'
import all, { handlers, host, slow } from './vitest.config.ts'

/** Of requests to the app: the quick ones. */
const requests = ['browsers', 'computes', 'consoles', 'http', 'ports', 'projects']

/** The inner loop: what starts no service and no emulator. */
export default defineConfig({
  test: {
    ...all.test,
    projects: [
      { extends: true, test: { name: 'unit', ...host, include: unitFiles(slow) } },
      {
        extends: true,
        test: { name: 'node', ...handlers, include: requests.map((name) => `test/handlers/${name}.test.ts`) },
      },
    ],
  },
})
