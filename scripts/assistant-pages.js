import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

// JavaScript, as bundle-browser.js, which uses it.

const root = join(import.meta.dirname, '..')

/** The pages of the documentation that help to write a lab file. */
const pages = ['lab-file', 'links-and-impairment', 'switches', 'machines', 'routers', 'containers', 'nat']

/** What the MCP server offers as documents, by name, as JSON: those pages, and the example labs. */
export async function assistantPages() {
  const ofDocs = pages.map(async (name) => [name, await readFile(join(root, `docs/${name}.md`), 'utf8')])
  const folders = (await readdir(join(root, 'examples'), { withFileTypes: true })).filter((it) => it.isDirectory())
  const ofExamples = folders.map(async ({ name }) => {
    const text = await readFile(join(root, `examples/${name}/${name}.lab.yaml`), 'utf8').catch(() => undefined)
    return text === undefined ? [] : [[`examples/${name}`, text]]
  })
  const found = [...(await Promise.all(ofDocs)), ...(await Promise.all(ofExamples)).flat().sort()]
  return JSON.stringify(Object.fromEntries(found))
}
