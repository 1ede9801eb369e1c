import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type LoadResult, load } from './load.ts'
import { median, precise, ratio, target } from './medians.ts'
import { startServiceWith } from './service.ts'
import type { Row } from './table.ts'

const perSecond = 10_000
const rounds = 5
const seconds = 2
const maxTimes = 2

interface Told {
  readonly sent: number
  readonly 401?: number
  readonly 429?: number
}

/** What wrong log-ins, 10,000 a second, cost those who log in right: by another address, and by the same one with a token. */
export async function logins(): Promise<Row[]> {
  const service = await startServiceWith({ PATCHBAY_USER: 'anna', PATCHBAY_PASSWORD: 'the-right-one' })
  try {
    const { host, port } = new URL(service.url)
    const authorization = `Basic ${btoa('anna:the-right-one')}`
    const made = await fetch(`${service.url}/v2/tokens`, {
      ...{ method: 'POST', headers: { authorization }, body: '{"name": "bench", "role": "read"}' },
    })
    const { token } = (await made.json()) as { token: string }
    const path = '/v2/compute/version'
    const rows: Row[] = []
    for (const [what, right, from] of [
      ['right password from another address', `http://anna:the-right-one@${host}${path}`, '127.0.0.2'],
      ['token from the same address', `http://token:${token}@${host}${path}`, '127.0.0.1'],
    ] as const) {
      const quiet: LoadResult[] = []
      const busy: LoadResult[] = []
      const told: { perSecond: number; refused: number }[] = []
      for (let round = 0; round < rounds; round++) {
        quiet.push(await load(right, 1, seconds))
        const attack = await begin(port, from)
        busy.push(await load(right, 1, seconds))
        told.push(await attack.end())
      }
      const typical = (results: readonly LoadResult[]) => median(results.map(({ p50 }) => p50))
      const meanOf = (results: readonly LoadResult[]) => median(results.map((it) => 1000 / it.perSecond))
      const [before, under] = [typical(quiet), typical(busy)]
      const [worst, worstUnder] = [quiet, busy].map((results) => median(results.map(({ p99 }) => p99))) as [
        number,
        number,
      ]
      const wrong = median(told.map((it) => it.perSecond))
      const refused = median(told.map((it) => it.refused))
      rows.push([
        `${what}, beside ${Math.round(wrong)} wrong log-ins a second`,
        ratio(under, before),
        `p50 ${precise(before)} to ${precise(under)}, mean ${precise(meanOf(quiet))} to ${precise(meanOf(busy))}, p99 ${precise(worst)} to ${precise(worstUnder)}; ` +
          `${(refused * 100).toFixed(1)} % refused unseen; ${target(under < maxTimes * before, `${maxTimes} x`)}`,
      ])
    }
    return rows
  } finally {
    await service.close()
  }
}

/** Wrong log-ins from that address; resolves when they come at their rate. */
async function begin(port: string, from: string): Promise<{ end(): Promise<{ perSecond: number; refused: number }> }> {
  const program = join(import.meta.dirname, 'wrong-logins.ts')
  const child: ChildProcess = spawn(process.execPath, [...process.execArgv, program, port, String(perSecond), from], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  if (child.stdout === null) throw new Error('no standard output')
  const lines = createInterface({ input: child.stdout })
  const told: Told[] = []
  lines.on('line', (line) => told.push(JSON.parse(line) as Told))
  await once(lines, 'line')
  return {
    async end() {
      const [first, last] = [told[0], told.at(-1)]
      child.stdin?.end()
      await once(child, 'exit')
      if (first === undefined || last === undefined || first === last) throw new Error('the attack told nothing')
      const answered = (last[401] ?? 0) + (last[429] ?? 0) - (first[401] ?? 0) - (first[429] ?? 0)
      // It tells every second.
      const elapsed = told.length - 1
      return { perSecond: answered / elapsed, refused: ((last[429] ?? 0) - (first[429] ?? 0)) / answered }
    },
  }
}
