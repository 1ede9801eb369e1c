import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { LabDocument } from '../../../src/labs/lab/document.ts'
import { decodeEntries } from '../../../src/labs/lab/document-codec.ts'
import { mapLimit } from '../../../src/lib/async/map-limit.ts'
import { at, median, ms, target } from '../medians.ts'
import { type Service, startService } from '../service.ts'
import type { Row } from '../table.ts'
import { each, timed } from '../times.ts'

const [small, many, manyLinks] = [100, 1000, 1500]
const [turns, clients, edits] = [5, 20, 200]
const idleMs = 5000

/** A lab of 100 nodes, and one of 1,000 with 1,500 links: what is read, opened, edited and told to others. */
export async function large(): Promise<Row[]> {
  const service = await startService()
  try {
    const smallLab = await makeLab(service, 'small', small)
    const nodes = `${smallLab}/nodes`
    await each(Array(50).fill(nodes), (path) => service.call('GET', path))
    const read = median(await each(Array(200).fill(nodes), (path) => service.call('GET', path)))
    const lab = await makeLab(service, 'large', many)
    const ids = ((await service.call('GET', `${lab}/nodes`)) as { node_id: string }[]).map(({ node_id }) => node_id)
    const linksMs = await timed(() => link(service, lab, ids, manyLinks))
    const opens: number[] = []
    for (let turn = 0; turn < turns; turn++) {
      await service.call('POST', `${lab}/close`)
      opens.push(await timed(() => service.call('POST', `${lab}/open`)))
    }
    const open = median(opens)
    const documentMb = await memoryOf(service, lab)
    return [
      [`GET of ${small} nodes`, `${ms(read)} p50`, target(read < 5, ms(5))],
      [
        `${many} nodes, ${manyLinks} links: open`,
        `${ms(open)} p50`,
        `links made by a request each ${ms(linksMs)}, ${target(open < 3000, ms(3000))}`,
      ],
      ['its document in memory', `${documentMb.toFixed(1)} MB`, target(documentMb < 30, '30 MB')],
      ...(await edited(service, lab, ids)),
      ...(await idle(service, lab)),
    ]
  } finally {
    await service.close()
  }
}

/** Makes a lab of switches on a grid. The result: its path. */
export async function makeLab(service: Service, name: string, count: number): Promise<string> {
  const { project_id } = (await service.call('POST', '/v2/projects', { name })) as { project_id: string }
  const lab = `/v2/projects/${project_id}`
  await mapLimit(Array.from({ length: count }), (_, index) =>
    service.call('POST', `${lab}/nodes`, { name: `S${index + 1}`, node_type: 'switch', ...placeOf(index, count) }),
  )
  return lab
}

function placeOf(index: number, count: number): { x: number; y: number } {
  const columns = Math.ceil(Math.sqrt(count * 1.6))
  return { x: (index % columns) * 140, y: Math.floor(index / columns) * 140 }
}

/** A ring with chords. */
export async function link(service: Service, lab: string, ids: readonly string[], count: number): Promise<void> {
  const half = Math.floor(ids.length / 2)
  const end = (index: number, port_number: number) => ({
    ...{ node_id: ids[index % ids.length], adapter_number: 0, port_number },
  })
  const links = Array.from({ length: count }, (_, index) => {
    if (index < ids.length) return { nodes: [end(index, 0), end(index + 1, 1)] }
    const [chord, port] = [(index - ids.length) % half, 2 + Math.floor((index - ids.length) / half)]
    return { nodes: [end(chord, port), end(chord + half, port)] }
  })
  await mapLimit(links, (body) => service.call('POST', `${lab}/links`, body))
}

/** What the document takes in the heap, MB: it is read as the service reads it. */
async function memoryOf(service: Service, lab: string): Promise<number> {
  const directory = join(service.data, 'labs')
  const name = (await readdir(directory)).find((it) => lab.endsWith(it.replace('.jsonl', '')))
  if (name === undefined) throw new Error(`${directory} has no document of the lab`)
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const before = process.memoryUsage().heapUsed
  const document = new LabDocument(decodeEntries(await entriesOf(join(directory, name))))
  collect()
  const after = process.memoryUsage().heapUsed
  if (document.nodes.size !== many || document.links.size !== manyLinks) throw new Error('the document is not whole')
  return (after - before) / 2 ** 20
}

async function entriesOf(path: string): Promise<Map<string, unknown>> {
  const entries = new Map<string, unknown>()
  for (const line of (await readFile(path, 'utf8')).split('\n').filter((it) => it !== '')) {
    for (const [key, value] of Object.entries(JSON.parse(line) as object)) {
      if (value === null) entries.delete(key)
      else entries.set(key, value)
    }
  }
  return entries
}

/** Edits of one client, alone and while others read the feed. */
async function edited(service: Service, lab: string, ids: readonly string[]): Promise<Row[]> {
  const edit = (y: number) => service.call('PUT', `${lab}/nodes/${ids[y % many]}`, { y })
  const places = Array.from({ length: edits }, (_, index) => index + 1)
  await each(places, edit)
  const alone = await each(places, edit)
  const began: number[] = []
  const seen: number[] = []
  const answers = await Promise.all(Array.from({ length: clients }, () => feedOf(service, lab)))
  const readers = answers.map(async (answer) => {
    let left = edits
    for await (const line of createInterface({ input: answer })) {
      const { action, event } = JSON.parse(line) as { action: string; event: { y: number } }
      if (action !== 'node.updated') continue
      seen.push(performance.now() - (began[event.y] as number))
      left -= 1
      if (left === 0) break
    }
    answer.destroy()
  })
  for (const y of places.map((place) => place + edits)) {
    began[y] = performance.now()
    await edit(y)
  }
  await Promise.all(readers)
  const [own, others] = [median(alone), at(seen, 0.99)]
  return [
    ['an edit there', `${ms(own)} p50`, `p99 ${ms(at(alone, 0.99))}, ${target(own < 5, ms(5))}`],
    [`seen by ${clients} others`, `${ms(others)} p99`, `p50 ${ms(median(seen))}, ${target(others < 50, ms(50))}`],
  ]
}

/** Processor time of the service while nobody listens, and while one client does. */
async function idle(service: Service, lab: string): Promise<Row[]> {
  const spent = async () => {
    const { cpuMs } = await service.usage()
    await new Promise((resolve) => setTimeout(resolve, idleMs))
    return ((await service.usage()).cpuMs - cpuMs) / (idleMs / 1000)
  }
  const alone = await spent()
  const answer = await feedOf(service, lab)
  answer.resume()
  const heard = await spent()
  answer.destroy()
  const { memoryMb } = await service.usage()
  const more = `one listener ${ms(heard)}, ${Math.round(memoryMb)} MB, service and keeper`
  return [['link states, no listener', `${ms(alone)} CPU a second`, `${more}, ${target(alone < 10, 'nothing')}`]]
}

async function feedOf(service: Service, lab: string): Promise<IncomingMessage> {
  const [answer] = (await once(get(`${service.url}${lab}/notifications`), 'response')) as [IncomingMessage]
  return answer.on('error', () => {})
}
