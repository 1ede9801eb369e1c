import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { manifest, nativePackage, processors, root, run, secondsOfCommit, shipped } from './program.ts'

interface Component {
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly [member: string]: unknown
}

/** What `npm sbom` writes, as far as it is read here: https://cyclonedx.org/docs/1.5/json/. */
interface BillOfMaterials {
  readonly serialNumber?: string
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[]
}

/**
 * Writes into a directory what the packages are made of, in the form of CycloneDX 1.5; the path of the file. It is what `npm sbom` (npm 10 or
 * later) lists, without what only a checkout needs, and with the reference page. The same commit gives the same bytes.
 */
export async function writeSbom(out: string): Promise<string> {
  const { name, version } = await manifest()
  const { stdout } = await run('npm', ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx'], {
    ...{ cwd: root, maxBuffer: 16_000_000 },
  })
  const { serialNumber: _, ...bill } = JSON.parse(stdout) as BillOfMaterials
  const { component } = bill.metadata
  // npm's own choice of what is for development alone also omits what a tool needs besides.
  const paths = (await shipped()).map(([path, version]) => `${path.replace(/^.*node_modules\//, '')}@${version}`)
  const names = new Set<string>(processors.map(nativePackage))
  const listed = bill.components.filter((it) => names.has(it.name) || paths.includes(`${it.name}@${it.version}`))
  const components = await Promise.all(
    listed.map(async (it) => ({ ...it, licenses: it.licenses ?? (await licencesOf(it)) })),
  )
  const refs = new Set([component, ...components].map((it) => it['bom-ref']))
  const text = JSON.stringify({
    ...bill,
    metadata: {
      ...bill.metadata,
      timestamp: new Date((await secondsOfCommit()) * 1000).toISOString(),
      component: { ...component, type: 'application', name },
    },
    components: [...components, await referencePage()],
    dependencies: bill.dependencies
      .filter(({ ref }) => refs.has(ref))
      .map((it) => ({ ...it, dependsOn: it.dependsOn?.filter((ref) => refs.has(ref)) })),
  })
  const file = join(out, `${name}-${version}.cdx.json`)
  await mkdir(out, { recursive: true })
  await writeFile(`${file}.new`, `${text}\n`)
  await rename(`${file}.new`, file)
  return file
}

/** The licences of a package that names them in the former way, by `licenses`, which npm does not read. */
async function licencesOf({ name }: Component): Promise<object[]> {
  const text = await readFile(join(root, 'node_modules', name, 'package.json'), 'utf8')
  const { licenses = [] } = JSON.parse(text) as { licenses?: readonly { readonly type: string }[] }
  if (licenses.length === 0) throw new Error(`the package ${name} names no licence`)
  return licenses.map(({ type }) => ({ license: { id: type } }))
}

/** RapiDoc, which is a file of the checkout (docs/decisions/packaging.md). */
async function referencePage(): Promise<Component> {
  const script = await readFile(join(root, 'runtime/vendor/rapidoc-min.js'), 'utf8')
  const version = /RapiDoc (\d[\d.]*)/.exec(script)?.[1]
  if (version === undefined) throw new Error('runtime/vendor/rapidoc-min.js does not say its version')
  return {
    ...{ 'bom-ref': `rapidoc@${version}`, type: 'library', name: 'rapidoc', version, scope: 'required' },
    ...{ purl: `pkg:npm/rapidoc@${version}`, licenses: [{ license: { id: 'MIT' } }] },
  }
}
