import { chmod, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { bundle } from './bundle.js'

/** Where the program comes. */
const outdir = process.argv[2] ?? 'dist'

await rm(outdir, { recursive: true, force: true })
await bundle(outdir)
await chmod(join(outdir, 'patchbay.js'), 0o755)
