import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { findProgram } from '../runtime/node/os/system/find-program.ts'
import { packContainer } from './packages/container.ts'
import { packDeb, packNodeDeb } from './packages/deb.ts'
import { packNpm } from './packages/npm.ts'
import { type Processor, processors, root } from './packages/program.ts'
import { writeSbom } from './packages/sbom.ts'

const usage = `Usage: npm run package [-- [FORM...] [--out DIRECTORY] [--cpu x64|arm64]]

Makes packages of this checkout, all forms unless some are named: npm, deb (for both CPUs), node-deb (a Node.js of its own for Debian systems
whose own is too old), container (an image as an OCI archive; needs root, buildah and mmdebstrap), and sbom (what they are made of, as
CycloneDX; needs npm 10). The file SHA256SUMS has their checksums.`

/** Each gives the paths of what it made. */
const makers: Readonly<Record<string, (out: string, cpus: readonly Processor[]) => Promise<readonly string[]>>> = {
  npm: async (out) => [await packNpm(out)],
  deb: async (out, cpus) => {
    const made: string[] = []
    for (const cpu of cpus) made.push(await packDeb(out, { for: [cpu] }))
    return made
  },
  'node-deb': async (out) => [await packNodeDeb(out)],
  container: async (out) => [await packContainer(out)],
  sbom: async (out) => [await writeSbom(out)],
}

/** Why this machine cannot make a form; undefined if it can. */
function whyNot(form: string): string | undefined {
  const lacking = (programs: readonly string[]) => {
    const missing = programs.filter((it) => findProgram(it) === undefined)
    return missing.length === 0 ? undefined : `${missing.join(' and ')} is not installed`
  }
  if (form.endsWith('deb')) return lacking(['dpkg-deb'])
  if (form !== 'container') return undefined
  return process.getuid?.() === 0 ? lacking(['buildah', 'mmdebstrap']) : 'it needs root'
}

/** Writes the checksums of files as sha256sum(1) reads them. */
async function writeSums(out: string, files: readonly string[]): Promise<string> {
  const lines: string[] = []
  for (const file of files) {
    const hash = createHash('sha256')
    await pipeline(createReadStream(file), hash)
    lines.push(`${hash.digest('hex')}  ${basename(file)}\n`)
  }
  const sums = join(out, 'SHA256SUMS')
  await writeFile(`${sums}.new`, lines.join(''))
  await rename(`${sums}.new`, sums)
  return sums
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    out: { type: 'string', default: resolve(root, 'build') },
    cpu: { type: 'string' },
    help: { type: 'boolean' },
  },
})
const unknown = positionals.find((it) => !Object.hasOwn(makers, it))
const processor = processors.find((it) => it === values.cpu)
if (values.help === true) {
  console.log(usage)
} else if (unknown !== undefined || (values.cpu !== undefined && processor === undefined)) {
  console.error(
    `${unknown === undefined ? `no package is made for the CPU ${values.cpu}` : `${unknown} is no form of package`}\n\n${usage}`,
  )
  process.exitCode = 2
} else {
  const out = resolve(values.out)
  const files: string[] = []
  for (const form of positionals.length === 0 ? Object.keys(makers) : positionals) {
    const reason = whyNot(form)
    if (reason !== undefined && positionals.length > 0) throw new Error(`${form} cannot be made: ${reason}`)
    if (reason !== undefined) {
      console.error(`${form}: left out, ${reason}`)
      continue
    }
    for (const file of (await makers[form]?.(out, processor === undefined ? processors : [processor])) ?? []) {
      files.push(file)
      console.log(file)
    }
  }
  console.log(await writeSums(out, files))
}
