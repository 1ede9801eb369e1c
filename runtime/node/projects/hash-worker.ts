import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { parentPort } from 'node:worker_threads'

/** Hashes files away from the event loop of the service: takes {id, path}, answers {id, md5sum}, undefined when unreadable. */
parentPort?.on('message', (request: { id: number; path: string }) => void answer(request))

async function answer({ id, path }: { id: number; path: string }): Promise<void> {
  let md5sum: string | undefined
  try {
    const hash = createHash('md5')
    await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash)
    md5sum = hash.digest('hex')
  } catch {
    // Gone or not readable: the file is left out of the list.
  }
  parentPort?.postMessage({ id, md5sum })
}
