import { chmod, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundle } from './bundle.js'
import { bundleBrowser } from './bundle-browser.js'

/** Where the program comes. */
const outdir = process.argv[2] ?? 'dist'

await rm(outdir, { recursive: true, force: true })
await bundle(outdir)
await chmod(join(outdir, 'patchbay.js'), 0o755)
// For wrangler: a Worker has no files, and imports those of the page as one.
const files = Object.fromEntries(await bundleBrowser())
await writeFile(join(outdir, 'page-files.js'), `export default ${JSON.stringify(files)}\n`)
