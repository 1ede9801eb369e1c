import { expect, test } from 'vitest'
import { ApiError, conflict, notFound } from '../../../src/lib/errors/api-error.ts'
import { Revert } from '../../../src/lib/revert.ts'

/** Runs an operation; the result: its outcome, its log, and the failures of its steps. */
async function run(operation: (revert: Revert, log: string[]) => Promise<string>) {
  const log: string[] = []
  const failures: string[] = []
  const whole = async () => {
    await using revert = new Revert(({ message }) => failures.push(message))
    return await operation(revert, log)
  }
  const outcome = await whole().catch((error: Error) => error.message)
  return { outcome, log, failures }
}

test('an operation that fails is reverted, the last step first, and rejects after the last one has ended', async () => {
  const { outcome, log } = await run(async (revert, log) => {
    revert.add(async () => {
      await Promise.resolve()
      log.push('first')
    })
    revert.add(() => log.push('second'))
    throw conflict('There is no room')
  })
  expect({ outcome, log }).toEqual({ outcome: 'There is no room', log: ['second', 'first'] })
})

test('an operation that has committed is not reverted, but what it does afterwards is', async () => {
  const { outcome, log } = await run(async (revert, log) => {
    revert.add(() => log.push('first'))
    revert.commit()
    revert.add(() => log.push('second'))
    return 'done'
  })
  expect({ outcome, log }).toEqual({ outcome: 'done', log: ['second'] })
})

test('a step that fails is reported; it hides neither the error of the operation nor the steps before it', async () => {
  const result = await run(async (revert, log) => {
    revert.add(() => log.push('first'))
    revert.add(async () => {
      throw new ApiError(502, 'The compute does not answer')
    })
    revert.add(() => {
      throw new Error('a defect')
    })
    throw conflict('There is no room')
  })
  expect(result).toEqual({
    ...{ outcome: 'There is no room', log: ['first'] },
    failures: ['a defect', 'The compute does not answer'],
  })
})

test('what is gone already is not a failure', async () => {
  const { outcome, failures } = await run(async (revert) => {
    revert.add(() => Promise.reject(notFound('There is no such node')))
    throw conflict('There is no room')
  })
  expect({ outcome, failures }).toEqual({ outcome: 'There is no room', failures: [] })
})

test.each([
  { what: 'refused', error: conflict('The name is taken'), isRemoved: false },
  { what: 'refused by what is full', error: new ApiError(507, 'The disk is full'), isRemoved: false },
  { what: 'lost on the way', error: new ApiError(502, 'The compute does not answer'), isRemoved: true },
  { what: 'a timeout', error: new ApiError(504, 'The compute does not answer in time'), isRemoved: true },
  { what: 'a defect', error: new Error('a defect'), isRemoved: true },
])('what was made is removed when the answer is $what: $isRemoved', async ({ error, isRemoved }) => {
  const { outcome, log } = await run(async (revert, log) => {
    await revert.make(
      () => Promise.reject(error),
      () => log.push('removed'),
    )
    return 'done'
  })
  expect({ outcome, log }).toEqual({ outcome: error.message, log: isRemoved ? ['removed'] : [] })
})

test('what was made is removed when a later step fails', async () => {
  const { outcome, log } = await run(async (revert, log) => {
    log.push(
      await revert.make(
        async () => 'made',
        () => log.push('removed'),
      ),
    )
    throw conflict('There is no room')
  })
  expect({ outcome, log }).toEqual({ outcome: 'There is no room', log: ['made', 'removed'] })
})
