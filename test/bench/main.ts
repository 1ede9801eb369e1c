import { existsSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { against, type Suite } from './against.ts'
import { browser } from './browser.ts'
import { commandLine } from './cli.ts'
import { coldStart, pcs, requests } from './compute.ts'
import { consoles } from './consoles.ts'
import { containers } from './containers.ts'
import { gateway, gatewayRequests } from './gateway.ts'
import { hostile } from './hostile.ts'
import { archives } from './labs/archives.ts'
import { jobs } from './labs/jobs.ts'
import { joinedAtOnce, labs } from './labs/labs.ts'
import { large } from './labs/large.ts'
import { nat } from './labs/nat.ts'
import { snapshots } from './labs/snapshots.ts'
import { logins } from './logins.ts'
import { machines } from './machines/machines.ts'
import { starts } from './machines/starts.ts'
import { netio } from './packets/netio.ts'
import { packetSuites, switchSuites } from './packets/of-program.ts'
import { packets } from './packets/packets.ts'
import { buildOf } from './revision.ts'
import { measure } from './service.ts'
import { printTable, type Row } from './table.ts'
import { worker } from './worker.ts'

/** Each suite is a list of parts; the table of a part is printed when it ends. */
const suites: Readonly<Record<string, readonly (() => Promise<Row[]>)[]>> = {
  start: [coldStart],
  requests: [requests],
  gateway: [gateway],
  worker: [worker],
  logins: [logins],
  hostile: [hostile],
  packets: [packets],
  netio: [netio],
  labs: [labs, large, jobs, archives, snapshots, nat],
  machines: [machines],
  consoles: [consoles],
  containers: [containers],
  cli: [commandLine],
  browser: [browser],
  // An idle VPCS polls, at 2 to 3 % of a core: hundreds of them need more cores than this is made for.
  'pcs-50-vpcs': [() => pcs('vpcs', 50)],
  'pcs-50': [() => pcs('embedded', 50)],
  'pcs-500': [() => pcs('embedded', 500)],
  'pcs-1000': [() => pcs('embedded', 1000)],
}

/** What is compared with another build: what its program does, in parts that are short enough for many turns. */
const comparable: Readonly<Record<string, readonly Suite[]>> = {
  start: [coldStart],
  requests: [requests],
  gateway: [gatewayRequests],
  packets: packetSuites,
  labs: [...switchSuites, joinedAtOnce],
  machines: [starts],
  cli: [commandLine],
  'pcs-50-vpcs': [() => pcs('vpcs', 50)],
  'pcs-50': [() => pcs('embedded', 50)],
  'pcs-500': [() => pcs('embedded', 500)],
}

// `npm run bench` runs everything, `npm run bench -- start requests` those two; the built program is measured, or that in the
// directory of --build. --against runs the build in a directory, or that of a revision, in turns with it, for 7 rounds or those of
// --rounds.
const { values, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: { against: { type: 'string' }, rounds: { type: 'string', default: '7' }, build: { type: 'string' } },
})
const rounds = Number(values.rounds)
const ours = resolve(values.build ?? join(import.meta.dirname, '../../dist'))
const known: readonly string[] = Object.keys(values.against === undefined ? suites : comparable)
const unknown = wanted.filter((name) => !known.includes(name))
if (unknown.length > 0) fail(`No such suite: ${unknown.join(', ')}; there are: ${known.join(', ')}`)
if (!Number.isInteger(rounds) || rounds < 1) fail(`--rounds: expected a number from 1, got ${values.rounds}`)
if (!existsSync(join(ours, 'patchbay.js'))) fail(`There is no build in ${ours}: patchbay.js is not there`)
const theirs = values.against === undefined ? undefined : otherBuild(values.against)

const [cpu] = cpus()
console.log(
  `${cpus().length} x ${cpu?.model ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}, Node ${process.version}\n`,
)
const chosen = <T>(all: Readonly<Record<string, T>>) =>
  Object.fromEntries(Object.entries(all).filter(([name]) => wanted.length === 0 || wanted.includes(name)))
measure(ours)
if (theirs !== undefined) {
  if (!(await against(Object.values(chosen(comparable)).flat(), { ours, theirs }, rounds))) process.exitCode = 1
} else {
  for (const part of Object.values(chosen(suites)).flat()) printTable(await part())
}

function otherBuild(name: string): string {
  try {
    return buildOf(name)
  } catch (error) {
    return fail((error as Error).message)
  }
}

function fail(message: string): never {
  console.error(message)
  process.exit(2)
}
