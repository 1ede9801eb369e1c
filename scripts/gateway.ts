import { randomBytes } from 'node:crypto'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { settingNames } from '../runtime/worker/shared/env.ts'
import { runWorker } from './run-worker.ts'

const usage = 'npm run gateway -- [--port NUMBER] [--host ADDRESS] [--data DIRECTORY] [--archives] [--images]'

function argumentsOf() {
  try {
    return parseArgs({
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        port: { type: 'string', default: '3080' },
        host: { type: 'string', default: '127.0.0.1' },
        archives: { type: 'boolean', default: false },
        images: { type: 'boolean', default: false },
        data: { type: 'string', default: join(homedir(), '.local/share/patchbay-gateway') },
      },
    }).values
  } catch (error) {
    return refuse((error as Error).message)
  }
}

function refuse(message: string): never {
  console.error(`${message}\n${usage}`)
  process.exit(64)
}

const values = argumentsOf()
if (values.help) {
  console.log(usage)
  process.exit(0)
}
if (!/^\d{1,5}$/.test(values.port) || Number(values.port) > 65_535)
  refuse(`--port: expected a number from 0 to 65535, got ${JSON.stringify(values.port)}`)

/** The gateway's Worker on this machine, in the runtime that it has at Cloudflare. */
const { data, host } = values
await mkdir(data, { recursive: true, mode: 0o700 })
const secrets = { FLEET_KEY: await secret('FLEET_KEY', 32), ADMIN_TOKEN: await secret('ADMIN_TOKEN', 24) }
const settings = Object.fromEntries(settingNames.map((name) => [name, process.env[name] ?? '']))
if (process.platform === 'linux') process.env.MINIFLARE_WORKERD_PATH = await endingWithUs(data)
const buckets = [...(values.archives ? ['ARCHIVES'] : []), ...(values.images ? ['IMAGES'] : [])]
const options = { host, port: Number(values.port), data, bindings: { ...settings, ...secrets }, buckets }
const gateway = await runWorker(options).catch((error: Error & { code?: string }) => {
  if (error.code !== 'ERR_ADDRESS_IN_USE') throw error
  console.error(`Port ${values.port} of ${host} is in use; choose another one with --port`)
  process.exit(1)
})
console.log(`The gateway is ready on ${gateway.url}`)
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void gateway.close().then(() => process.exit(0)))
}

/** From the environment, else from a file of the data directory, which is made when it is not there. */
async function secret(name: string, bytes: number): Promise<string> {
  const given = process.env[name]
  if (given !== undefined && given !== '') return given
  const file = join(data, name.toLowerCase().replace('_', '-'))
  const kept = await readFile(file, 'utf8').catch(() => '')
  if (kept.trim() === '') await writeFile(file, `${randomBytes(bytes).toString('hex')}\n`, { mode: 0o600, flag: 'w' })
  await chmod(file, 0o600)
  console.log(`${name} is in ${file}`)
  return (await readFile(file, 'utf8')).trim()
}

/** The runtime goes with this program, however that ends: a command that is used instead of it. */
async function endingWithUs(directory: string): Promise<string> {
  const { default: workerd } = createRequire(import.meta.url)('workerd') as { default: string }
  const file = join(directory, 'workerd')
  await writeFile(file, `#!/bin/sh\nexec setpriv --pdeathsig TERM '${workerd}' "$@"\n`, { mode: 0o700 })
  return file
}
