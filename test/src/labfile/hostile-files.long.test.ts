import { expect, test } from 'vitest'
import { readHere } from '../../../src/importers/readers.ts'
import { ApiError } from '../../../src/lib/errors/api-error.ts'
import { hostileFiles, readHostile } from '../../support/hostile-files.ts'
import { threadMs } from '../../support/processor-time.ts'

/** Two seconds of a machine that does nothing else, with room for one that is slow and shared, ms. */
const mostMs = 8_000
/** Most text that a file may become, characters: a lab is stored, and a message is sent. */
const mostText = 32 << 20

test.each(hostileFiles)('$reader: $name is read, or refused, within two seconds of processor time', async (file) => {
  const before = threadMs()
  const answer = await readHostile(readHere, file).catch((error: unknown) => error)
  expect(threadMs() - before).toBeLessThan(mostMs)
  if (answer instanceof Error) {
    expect(answer).toBeInstanceOf(ApiError)
    expect([400, 413]).toContain((answer as ApiError).status)
  }
  expect(JSON.stringify(answer instanceof Error ? answer.message : answer).length).toBeLessThan(mostText)
})
