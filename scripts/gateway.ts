import { randomBytes } from 'node:crypto'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runWorker } from './run-worker.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '3080' },
    host: { type: 'string', default: '127.0.0.1' },
    data: { type: 'string', default: join(homedir(), '.local/share/patchbay-gateway') },
  },
})

/** The gateway's Worker on this machine, in the runtime that it has at Cloudflare. */
const { data, host } = values
await mkdir(data, { recursive: true, mode: 0o700 })
const secrets = { FLEET_KEY: await secret('FLEET_KEY', 32), ADMIN_TOKEN: await secret('ADMIN_TOKEN', 24) }
const optional = ['ACCESS_TEAM_DOMAIN', 'ACCESS_AUDIENCE', 'ACCESS_ADMINS', 'ALLOWED_ORIGINS', 'RATE_PER_S']
const settings = Object.fromEntries(optional.map((name) => [name, process.env[name] ?? '']))
const gateway = await runWorker({ host, port: Number(values.port), data, bindings: { ...settings, ...secrets } })
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
