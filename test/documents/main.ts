import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { findProgram } from '../../runtime/node/os/system/find-program.ts'
import { endsWithUs } from '../support/ends-with-us.ts'
import { runPage } from './page.ts'

// `npm run documents`: runs the commands of README.md and docs/ word for word; with names of files, only theirs. The rules are in
// docs/contributing.md.

const root = join(import.meta.dirname, '../..')
/** By these the pages are run with both engines of pcs, where the machine has both. */
const engine = findProgram('vpcs') === undefined ? 'embedded' : 'vpcs'
const environments: Readonly<Record<string, NodeJS.ProcessEnv>> = {
  'README.md': { PATCHBAY_PC_ENGINE: engine },
  'docs/first-lab.md': { PATCHBAY_PC_ENGINE: 'embedded' },
  'docs/links-and-impairment.md': { PATCHBAY_PC_ENGINE: engine },
}

const asked = process.argv.slice(2)
const all = (await readdir(join(root, 'docs'), { recursive: true })).filter((name) => name.endsWith('.md')).sort()
const pages = asked.length > 0 ? asked.map((it) => relative(root, it)) : ['README.md', ...all.map((it) => `docs/${it}`)]
const directory = await mkdtemp(join(tmpdir(), 'patchbay-documents-'))
endsWithUs(directory)
let failed = 0
for (const page of pages) {
  const began = performance.now()
  try {
    const { run, notRun } = await runPage(page, { directory, env: environments[page] })
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    if (run + notRun > 0) console.log(`ok      ${page}: ${run} run, ${notRun} marked as not run, ${seconds} s`)
  } catch (error) {
    failed += 1
    console.log(`FAILED  ${(error as Error).message}`)
  }
}
await rm(directory, { recursive: true, force: true })
process.exit(failed === 0 ? 0 : 1)
