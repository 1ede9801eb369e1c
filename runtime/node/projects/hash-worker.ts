import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { parentPort } from 'node:worker_threads'

/** Hashes files away from the event loop of the service: takes {id, path, algorithm}, answers {id, sum}, undefined when unreadable. */
parentPort?.on('message', (request: Wanted) => void answer(request))

interface Wanted {
  readonly id: number
  readonly path: string
  readonly algorithm: string
}

async function answer({ id, path, algorithm }: Wanted): Promise<void> {
  let sum: string | undefined
  try {
    const hash = createHash(algorithm)
    await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash)
    sum = hash.digest('hex')
  } catch {
    // Gone or not readable: the file is left out of the list.
  }
  parentPort?.postMessage({ id, sum })
}
