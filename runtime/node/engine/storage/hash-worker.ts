import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { parentPort } from 'node:worker_threads'

/**
 * Hashes files in a worker thread: takes {id, path, algorithms}, answers {id, sums} in their order, undefined for an unreadable
 * file.
 */
parentPort?.on('message', (request: Wanted) => void answer(request))

type Wanted = { readonly id: number; readonly path: string; readonly algorithms: readonly string[] }

async function answer({ id, path, algorithms }: Wanted): Promise<void> {
  let sums: string[] | undefined
  try {
    const hashes = algorithms.map((algorithm) => createHash(algorithm))
    for await (const bytes of createReadStream(path, { highWaterMark: 1 << 20 })) {
      for (const hash of hashes) hash.update(bytes as Buffer)
    }
    sums = hashes.map((hash) => hash.digest('hex'))
  } catch {
    // Missing or unreadable: the file is left out of the list.
  }
  parentPort?.postMessage({ id, sums })
}
