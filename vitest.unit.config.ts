import { defineConfig } from 'vitest/config'
import { unitFiles } from './test/support/unit-files.ts'
import all, { host, slow } from './vitest.config.ts'

/** The inner loop: what starts no service and no emulator. */
export default defineConfig({
  test: { ...all.test, projects: [{ extends: true, test: { name: 'unit', ...host, include: unitFiles(slow) } }] },
})
