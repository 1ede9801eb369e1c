import { Agent, get } from 'node:http'
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { type HostileFile, hostileFiles } from '../support/hostile-files.ts'
import { ms, target } from './medians.ts'
import { startService } from './service.ts'
import type { Row } from './table.ts'

const mostMs = 250
const everyMs = 5

/** Where a file goes, by its reader. */
const requests: Readonly<
  Record<HostileFile['reader'], (text: string) => [method: string, path: string, body: string]>
> = {
  'lab file': (text: string) => ['PUT', '/v2/projects/hostile/topology?dry_run=true', text],
  import: (text: string) => ['POST', '/v2/imports', JSON.stringify({ text })],
  appliance: (text: string) => ['POST', '/v2/templates/import', JSON.stringify({ text })],
}

/** How long another request waits at most while files are read that were made to keep a reader busy. */
export async function hostile(): Promise<Row[]> {
  const service = await startService()
  try {
    const found: { name: string; status: number; took: number; waited: number }[] = []
    for (const { name, reader, text } of hostileFiles) {
      const [method, path, body] = requests[reader](text())
      const others = askAgainAndAgain(`${service.url}/v2/compute/version`)
      const began = performance.now()
      const answer = await fetch(service.url + path, { method, body })
      await answer.arrayBuffer()
      const took = performance.now() - began
      found.push({ name: `${reader}: ${name}`, status: answer.status, took, waited: await others.end() })
    }
    const worst = found.toSorted((a, b) => b.waited - a.waited)
    const longest = worst[0]?.waited ?? Number.NaN
    return [
      [
        `longest wait of another request beside ${found.length} hostile files`,
        ms(longest),
        target(longest <= mostMs, `${mostMs} ms`),
      ],
      ...worst
        .slice(0, 5)
        .map(({ name, status, took, waited }): Row => [name, ms(waited), `answered ${status} in ${ms(took)}`]),
    ]
  } finally {
    await service.close()
  }
}

/** Asks every few milliseconds, by a connection of its own, until `end`, which gives the longest wait. */
function askAgainAndAgain(url: string): { end(): Promise<number> } {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let isOver = false
  let longest = 0
  const asked = (async () => {
    while (!isOver) {
      const began = performance.now()
      await new Promise<void>((resolve, reject) => {
        get(url, { agent }, (answer) => answer.resume().once('end', resolve)).once('error', reject)
      })
      longest = Math.max(longest, performance.now() - began)
      await delay(everyMs)
    }
  })()
  return {
    async end() {
      isOver = true
      await asked
      agent.destroy()
      return longest
    },
  }
}
