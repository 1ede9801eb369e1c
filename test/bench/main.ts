import { cpus, release, totalmem } from 'node:os'
import { coldStart, pcs, requests } from './compute.ts'
import { gateway } from './gateway.ts'
import { machines } from './machines/machines.ts'
import { netio } from './packets/netio.ts'
import { packets } from './packets/packets.ts'
import { printTable, type Row } from './table.ts'
import { worker } from './worker.ts'

const suites: Readonly<Record<string, () => Promise<Row[]>>> = {
  start: coldStart,
  requests,
  gateway,
  worker,
  packets,
  netio,
  machines,
  // An idle VPCS polls, at 2 to 3 % of a core: hundreds of them need more cores than this is made for.
  'pcs-50-vpcs': () => pcs('vpcs', 50),
  'pcs-50': () => pcs('embedded', 50),
  'pcs-500': () => pcs('embedded', 500),
  'pcs-1000': () => pcs('embedded', 1000),
}

// `npm run bench` runs everything, `npm run bench -- start requests` those two; the built program is measured.
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !(name in suites))
if (unknown.length > 0) {
  console.error(`No such suite: ${unknown.join(', ')}; there are: ${Object.keys(suites).join(', ')}`)
  process.exit(2)
}

const [cpu] = cpus()
console.log(
  `${cpus().length} x ${cpu?.model ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}, Node ${process.version}\n`,
)
const rows: Row[] = []
for (const [name, run] of Object.entries(suites)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  rows.push(...(await run()))
}
printTable(rows)
