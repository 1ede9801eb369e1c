import { spawn } from 'node:child_process'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'

/** What kernels and modules are compressed with, by its first bytes. */
const formats: readonly { readonly magic: string; readonly unpack: (bytes: Buffer) => Buffer | Promise<Buffer> }[] = [
  { magic: '1f8b', unpack: (bytes) => gunzipSync(bytes) },
  { magic: 'fd377a585a00', unpack: (bytes) => through('xz', bytes) },
  { magic: '28b52ffd', unpack: (bytes) => through('zstd', bytes) },
]

/** As it is when it is not compressed, or with something else. */
export async function decompressed(bytes: Buffer): Promise<Buffer> {
  return (await formats.find(({ magic }) => bytes.toString('hex', 0, 6).startsWith(magic))?.unpack(bytes)) ?? bytes
}

async function through(program: 'xz' | 'zstd', bytes: Buffer): Promise<Buffer> {
  const child = spawn(program, ['-dc'], { stdio: ['pipe', 'pipe', 'ignore'] })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', resolve)
  })
  child.stdin.on('error', () => {})
  child.stdin.end(bytes)
  const [unpacked, code] = await Promise.all([buffer(child.stdout), ended])
  if (code !== 0) throw new Error(`${program} cannot decompress what it was given`)
  return unpacked
}
