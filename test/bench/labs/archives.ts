import { randomBytes, randomUUID } from 'node:crypto'
import { open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createDeflateRaw } from 'node:zlib'
import { type Service, startService } from '../service.ts'
import type { Row } from '../table.ts'
import { timed } from '../times.ts'

const mb = 2 ** 20
const sizeMb = 512
const projects = '/v2/projects'

/** Export, import, copy and snapshot of a lab with one large file; `node:zlib` and writes of the same bytes beside. */
export async function archives(): Promise<Row[]> {
  const service = await startService('--pc-engine', 'embedded')
  try {
    await service.call('POST', projects, { name: 'Bench' })
    await service.call('POST', `${projects}/bench/nodes`, { name: 'PC1', node_type: 'pc' })
    const disk = diskLike()
    const blob = new Blob(Array.from({ length: sizeMb / 16 }, () => disk))
    await fetch(`${service.url}${projects}/bench/nodes/PC1/files/disk.img`, { method: 'POST', body: blob })
    const rows: Row[] = []
    for (const [what, query] of [
      ['stored', 'compression=none'],
      ['deflated, level 1', 'compression_level=1'],
    ] as const) {
      const path = join(service.data, `${what}.zip`)
      const out = await timed(() => exportTo(service, `${projects}/bench/export?${query}`, path))
      const body = await openBlob(path)
      const back = await timed(() => importOf(service, body))
      await rm(path)
      rows.push([`export, ${what}`, rate(out), `import ${rate(back)}`])
    }
    const zlib = await timed(() => drain(Readable.from(blob.stream() as never).pipe(createDeflateRaw({ level: 1 }))))
    const write = await timed(() => writeAll(join(service.data, 'dd'), disk))
    const copy = await timed(() => service.call('POST', `${projects}/bench/duplicate`, { name: 'Copy' }))
    const keep = await timed(() => service.call('POST', `${projects}/bench/snapshots`, { name: 'one' }))
    return [
      ...rows,
      ['node:zlib by itself, level 1', rate(zlib), ''],
      ['duplicate', rate(copy), `snapshot ${rate(keep)}, write and sync of the same bytes ${rate(write)}`],
    ]
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

async function exportTo(service: Service, path: string, file: string): Promise<void> {
  const answer = await fetch(service.url + path)
  const handle = await open(file, 'w')
  for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) await handle.write(piece)
  await handle.close()
}

const openBlob = async (path: string): Promise<Blob> => new Blob([await readFile(path)])

async function importOf(service: Service, body: Blob): Promise<void> {
  const answer = await fetch(`${service.url}${projects}/${randomUUID()}/import`, { method: 'POST', body })
  if (answer.status !== 201) throw new Error(`import: ${answer.status} ${await answer.text()}`)
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

async function writeAll(path: string, piece: Buffer): Promise<void> {
  const handle = await open(path, 'w')
  for (let at = 0; at < sizeMb * mb; at += piece.length) await handle.write(piece)
  await handle.sync()
  await handle.close()
  await rm(path)
}
