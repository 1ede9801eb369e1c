import { chmod, rm } from 'node:fs/promises'
import { bundle } from './bundle.ts'

await rm('dist', { recursive: true, force: true })
await bundle('dist')
await chmod('dist/patchbay.js', 0o755)
