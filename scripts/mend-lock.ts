import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

// Mends package-lock.json. Run it after `npm install`. It removes the engines of tools that are run by the Node of the development
// dependencies, and by no other: npm compares them with the Node that npm itself runs on, and would warn everybody. And it removes
// the install script of ssh2, which would compile an optional native part, with a compiler and headers from the network.

const tools = ['node_modules/miniflare', 'node_modules/vitest']

interface Locked {
  engines?: unknown
  hasInstallScript?: boolean
}

const file = join(import.meta.dirname, '../package-lock.json')
const lock = JSON.parse(await readFile(file, 'utf8')) as { packages: Record<string, Locked> }
for (const tool of tools) delete lock.packages[tool]?.engines
delete lock.packages['node_modules/ssh2']?.hasInstallScript
await writeFile(file, `${JSON.stringify(lock, null, 2)}\n`)
