import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

// JavaScript, as bundle-browser.js, which uses it.

const root = join(import.meta.dirname, '..')

/** The licences of packages of node_modules, by their directories, one after the other. Most of them demand that their text goes along. */
export async function licencesOf(directories) {
  const texts = await Promise.all([...new Set(directories)].sort().map(licenceOf))
  return texts.join('\n')
}

/** The package of a file of node_modules: its directory; undefined for a file of ours. */
export const packageOf = (file) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0]

/** A licence under the name of what it is for. */
export const licence = (what, text) => `${'='.repeat(80)}\n${what}\n\n${text.trim()}\n`

/** A licence of a package, or of a part of another that it has in `vendor`. */
const licenceFile = /^(vendor\/[^/]+\/)?(licen[cs]e|notice|copying)[^/]*$/i

async function licenceOf(directory) {
  const place = join(root, directory)
  const { name, version, license } = JSON.parse(await readFile(join(place, 'package.json'), 'utf8'))
  const files = (await readdir(place, { recursive: true })).filter((it) => licenceFile.test(it)).sort()
  if (files.length === 0 && license === undefined) throw new Error(`${directory} has no licence`)
  const texts = await Promise.all(files.map((it) => readFile(join(place, it), 'utf8')))
  return licence(`${name} ${version}`, files.length === 0 ? `Licence: ${license}` : texts.join('\n'))
}
