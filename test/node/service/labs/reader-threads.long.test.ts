import { afterEach, expect, test } from 'vitest'
import { ReaderThreads } from '../../../../runtime/node/service/labs/reader-threads.ts'
import { readHere } from '../../../../src/importers/readers.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { hostileFiles, readHostile } from '../../../support/hostile-files.ts'
import { threadMs } from '../../../support/processor-time.ts'

const small = {
  document: 'lab: x\nnodes: { A: { kind: pc, config: { text: "ip 10.0.0.1/24\\n" } }, B: { kind: pc } }\n',
}
const largest = hostileFiles.find(({ name }) => name === 'as many nodes and links as a lab may have')

const open: ReaderThreads[] = []
function threadsWith(...[limits]: ConstructorParameters<typeof ReaderThreads>): ReaderThreads {
  const threads = new ReaderThreads(limits)
  open.push(threads)
  return threads
}
afterEach(async () => {
  for (const threads of open.splice(0)) await threads.close()
})

const refusalOf = async (read: Promise<unknown>): Promise<ApiError> => {
  const error = await read.catch((error: unknown) => error)
  expect(error).toBeInstanceOf(ApiError)
  return error as ApiError
}

test('a thread reads files and refuses them as they are read without it', async () => {
  const { read } = threadsWith()
  expect(await read('labFile', small)).toEqual(await readHere('labFile', small))
  const wrong = { document: 'lab: x\nnodes:\n  A: { kind: pc, imgae: x }\n' }
  const [there, here] = [await refusalOf(read('labFile', wrong)), await refusalOf(readHere('labFile', wrong))]
  const { message, status, code, extra, headers } = here
  expect(there).toMatchObject({ message, status, code, extra, headers })
  const already = await refusalOf(read('labImport', { text: 'lab: x\nnodes: {}\n' }))
  expect(already).toMatchObject({ status: 400, code: 'is-lab-file' })
})

test('reading the largest lab takes hardly any time of the thread that answers requests, and others are read meanwhile', async () => {
  // A busy machine may take longer than the limit.
  const threads = threadsWith({ ms: 600_000 })
  await Promise.all([threads.read('labFile', small), threads.read('labFile', small)])
  expect(threads.size).toBe(2)
  const document = largest?.text() ?? ''
  const before = threadMs()
  const order: string[] = []
  const slow = threads.read('labFile', { document }).then(() => order.push('large'))
  await threads.read('labFile', small).then(() => order.push('small'))
  expect(order).toEqual(['small'])
  await slow
  // The result is copied; reading it here takes at least a second more.
  expect(threadMs() - before).toBeLessThan(800)
})

test('a file that takes longer than the limit is refused, and the next one is read', async () => {
  const { read } = threadsWith({ ms: 1 })
  const error = await refusalOf(readHostile(read, largest as never))
  expect(error).toMatchObject({ status: 413, message: expect.stringContaining('takes longer than 0.001 s') })
})

test('a file that takes more memory than the limit is refused, and the service goes on', async () => {
  const threads = threadsWith({ memoryMb: 40 })
  const error = await refusalOf(readHostile(threads.read, largest as never))
  expect(error).toMatchObject({ status: 413, message: expect.stringContaining('more than 40 MB of memory') })
  expect(await threads.read('labFile', small)).toMatchObject({ lab: 'x' })
})

test('more files than may wait are refused with a time after which to try again', async () => {
  const threads = threadsWith({ threads: 1, waiting: 1 })
  const reads = [threads.read('labFile', small), threads.read('labFile', small)]
  const error = await refusalOf(threads.read('labFile', small))
  expect(error).toMatchObject({ status: 503, headers: { 'Retry-After': expect.any(String) } })
  expect(await Promise.all(reads)).toHaveLength(2)
})

test('there is no thread before the first file, nor some time after the last', async () => {
  const threads = threadsWith({ idleMs: 20 })
  expect(threads.size).toBe(0)
  await threads.read('labFile', small)
  expect(threads.size).toBe(1)
  await expect.poll(() => threads.size).toBe(0)
})
