import { open } from 'node:fs/promises'

const mostBytes = 4096

/** The end of what a program wrote, as it may be shown: printable, and without the path of its directory. */
export async function lastWords(log: string, directory: string): Promise<string> {
  const text = await endOfFile(log).catch(() => '')
  const lines = text.replaceAll(`${directory}/`, '').replaceAll(directory, '').split(/\r?\n/)
  const said = lines.map((line) => line.replace(/[^\x20-\x7e]/g, ' ').trim()).filter((line) => line !== '')
  return said.slice(-2).join('; ').slice(-300)
}

async function endOfFile(path: string): Promise<string> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const bytes = Buffer.alloc(Math.min(size, mostBytes))
    const { bytesRead } = await file.read(bytes, 0, bytes.length, size - bytes.length)
    return bytes.toString('latin1', 0, bytesRead)
  } finally {
    await file.close()
  }
}
