import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { packNpm } from './packages/npm.ts'
import { root } from './packages/program.ts'

// npm run package [-- --out DIRECTORY]: makes the packages of this checkout, and says where they are.
const { values } = parseArgs({ options: { out: { type: 'string', default: resolve(root, 'build') } } })
console.log(await packNpm(resolve(values.out)))
