import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, createReadStream, createWriteStream, openSync, writeSync } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createDeflateRaw, createInflateRaw } from 'node:zlib'
import { median, target } from '../medians.ts'
import { startService } from '../service.ts'
import type { Row } from '../table.ts'
import { timed } from '../times.ts'

const mb = 2 ** 20
const [sizeMb, turns] = [512, 3]
const projects = '/v2/projects'
/** The least rate of copies and stored members, as a time; the least share of `node:zlib` for other members. */
const [storedMs, deflatedShare] = [(sizeMb / 150) * 1000, 0.7]

/** Export, import, copy and snapshot of a lab with one large file; `node:zlib` and writes of the same bytes beside. The median of turns. */
export async function archives(): Promise<Row[]> {
  const service = await startService('--pc-engine', 'embedded')
  try {
    await service.call('POST', projects, { name: 'Bench' })
    await service.call('POST', `${projects}/bench/nodes`, { name: 'PC1', node_type: 'pc' })
    const [disk, path] = [join(service.data, 'disk.img'), join(service.data, 'bench.zip')]
    const { fill, sync } = await writeAll(disk, diskLike())
    const write = fill + sync
    await upload(`${service.url}${projects}/bench/nodes/PC1/files/disk.img`, disk)
    const plain = createReadStream(disk, { highWaterMark: mb })
    const zlib = await timed(() =>
      pipeline(plain, createDeflateRaw({ level: 1, chunkSize: mb }), createWriteStream(path)),
    )
    const packed = createReadStream(path, { highWaterMark: mb })
    const unzip = await timed(() => drain(packed.pipe(createInflateRaw({ chunkSize: mb }))))
    const rows: Row[] = [
      ['new file of the same bytes', rate(fill), `with its sync ${rate(write)}; an import writes two, and syncs one`],
      ['node:zlib by itself, level 1', rate(zlib), `inflated ${rate(unzip)}; the base of the deflated`],
    ]
    for (const [what, query, wantedOut, wantedBack] of [
      ['stored', 'compression=none', storedMs, storedMs],
      ['deflated, level 1', 'compression_level=1', zlib / deflatedShare, Math.max(storedMs, unzip / deflatedShare)],
    ] as const) {
      const [out, back]: [number[], number[]] = [[], []]
      for (let turn = 0; turn < turns; turn++) {
        out.push(await timed(() => exportTo(`${service.url}${projects}/bench/export?${query}`, path)))
        const id = randomUUID()
        back.push(await timed(() => upload(`${service.url}${projects}/${id}/import`, path)))
        await service.call('DELETE', `${projects}/${id}`)
      }
      const judged = (times: readonly number[], wanted: number) => target(median(times) <= wanted, rate(wanted))
      rows.push([`export, ${what}`, rate(median(out)), judged(out, wantedOut)])
      rows.push([`import, ${what}`, rate(median(back)), judged(back, wantedBack)])
    }
    const copy = await timed(() => service.call('POST', `${projects}/bench/duplicate`, { name: 'Copy' }))
    const keep = await timed(() => service.call('POST', `${projects}/bench/snapshots`, { name: 'one' }))
    const beside = (ms: number) =>
      `write and sync of the same bytes ${rate(write)}, ${target(ms <= storedMs, rate(storedMs))}`
    return [...rows, ['duplicate', rate(copy), beside(copy)], ['snapshot', rate(keep), beside(keep)]]
  } finally {
    await service.close()
  }
}

const rate = (ms: number): string => `${Math.round(sizeMb / (ms / 1000))} MB/s`

/** 16 MB, half of which can be compressed. */
function diskLike(): Buffer<ArrayBuffer> {
  const bytes = Buffer.alloc(16 * mb)
  for (let at = 0; at < bytes.length; at += 8192) randomBytes(4096).copy(bytes, at)
  return bytes
}

/**
 * Receives as a client of HTTP/1.0 does, whose answer ends with its connection: `node:http` takes as long as the service, and the two
 * share the processors.
 */
async function exportTo(address: string, file: string): Promise<void> {
  const { hostname, port, pathname, search } = new URL(address)
  const target = openSync(file, 'w')
  let head: string | undefined = ''
  const take = (bytes: Uint8Array): void => {
    if (head === undefined) return void writeSync(target, bytes)
    head += Buffer.from(bytes).toString('latin1')
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) return
    if (!/^HTTP\/1\.[01] 200 /.test(head)) throw new Error(head)
    const first = Buffer.from(head.slice(end + 4), 'latin1')
    head = undefined
    take(first)
  }
  const onread = {
    buffer: Buffer.alloc(mb),
    callback(length: number, bytes: Uint8Array) {
      take(bytes.subarray(0, length))
      return true
    },
  }
  const socket = connect({ host: hostname, port: Number(port), onread })
  socket.write(`GET ${pathname}${search} HTTP/1.0\r\nHost: ${hostname}\r\n\r\n`)
  await once(socket, 'close')
  closeSync(target)
}

/** Not by `fetch`, which takes as long as the service. */
async function upload(url: string, file: string): Promise<void> {
  const { size } = await stat(file)
  const sent = request(url, { method: 'POST', headers: { 'content-length': size } })
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>
  await pipeline(createReadStream(file, { highWaterMark: mb }), sent)
  const [answer] = await answered
  const said = await text(answer)
  if ((answer.statusCode ?? 0) >= 300) throw new Error(`${url}: ${answer.statusCode} ${said}`)
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

/** How long the write into a new file took, and the sync after it, ms: the first is limited by fresh memory, the other by the disk. */
async function writeAll(path: string, piece: Buffer): Promise<{ fill: number; sync: number }> {
  await using handle = await open(path, 'w')
  const fill = await timed(async () => {
    for (let at = 0; at < sizeMb * mb; at += piece.length) await handle.write(piece)
  })
  return { fill, sync: await timed(() => handle.sync()) }
}
