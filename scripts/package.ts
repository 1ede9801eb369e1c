import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { packContainer } from './packages/container.ts'
import { packDeb, packNodeDeb } from './packages/deb.ts'
import { packNpm } from './packages/npm.ts'
import { processors, root } from './packages/program.ts'

const usage = `Usage: npm run package [-- [FORM...] [--out DIRECTORY] [--cpu x64|arm64]]

Makes packages of this checkout: npm (the default), deb, node-deb (a Node.js of its own for Debian systems whose own is too old), and
container (an image as an OCI archive; needs root, buildah and mmdebstrap).`

const makers = { npm: packNpm, deb: packDeb, 'node-deb': packNodeDeb, container: packContainer }

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    out: { type: 'string', default: resolve(root, 'build') },
    cpu: { type: 'string' },
    help: { type: 'boolean' },
  },
})
const forms = positionals.length === 0 ? ['npm'] : positionals
const unknown = forms.find((it) => !Object.hasOwn(makers, it))
const processor = processors.find((it) => it === values.cpu)
if (values.help === true) {
  console.log(usage)
} else if (unknown !== undefined || (values.cpu !== undefined && processor === undefined)) {
  console.error(
    `${unknown === undefined ? `no package is made for the CPU ${values.cpu}` : `${unknown} is no form of package`}\n\n${usage}`,
  )
  process.exitCode = 2
} else {
  for (const form of forms as (keyof typeof makers)[])
    console.log(
      await makers[form](resolve(values.out), form === 'deb' && processor !== undefined ? { for: [processor] } : {}),
    )
}
