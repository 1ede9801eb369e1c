import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

// Removes from package-lock.json the engines of tools that are run by the Node of the development dependencies, and by no
// other: npm compares them with the Node that npm itself runs on, and would warn everybody. Run it after `npm install`.

const tools = ['node_modules/miniflare', 'node_modules/vitest']

const file = join(import.meta.dirname, '../package-lock.json')
const lock = JSON.parse(await readFile(file, 'utf8')) as { packages: Record<string, { engines?: unknown }> }
for (const tool of tools) delete lock.packages[tool]?.engines
await writeFile(file, `${JSON.stringify(lock, null, 2)}\n`)
