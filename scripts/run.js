import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { bundleInPlace, isFresh } from './bundle.js'

// `npm start` and `scripts/patchbay`: the program in dist/, bundled first when it is not there or older than its sources.
// It then runs in this very process, so signals reach it and nothing else stays.

const dist = join(import.meta.dirname, '../dist')
const program = join(dist, 'patchbay.js')

if (!(await isFresh(dist))) {
  try {
    await bundleInPlace(dist)
    // The bundler's own process.
    await (await import('esbuild')).stop()
  } catch (error) {
    // A directory of another user, say; what was built there before is as good as it gets.
    const isThere = existsSync(program)
    process.stderr.write(
      `patchbay: ${dist} cannot be built (${error.message})${isThere ? '; what is there is older than the sources' : ': run "npm run build" as the owner of this directory'}\n`,
    )
    if (!isThere) process.exit(1)
  }
}
await import(program)
