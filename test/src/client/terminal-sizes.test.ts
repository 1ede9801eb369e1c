import { expect, test } from 'vitest'
import { TerminalSizes } from '../../../src/client/terminal-sizes.ts'
import { tooMany } from '../../../src/lib/errors/api-error.ts'
import type { TerminalSize } from '../../../src/model/schema/console-size.ts'

/** A console that takes sizes when the test lets it, and has the last one `columns` wide when it waits. */
function console() {
  const taken: string[] = []
  let answer = (_: boolean) => {}
  return {
    taken,
    resize: ({ columns, rows }: TerminalSize) => {
      taken.push(`${columns}x${rows}`)
      return new Promise<boolean>((resolve) => {
        answer = resolve
      })
    },
    answer: (isOfUse: boolean) => answer(isOfUse),
  }
}

test('a console gets the size, and of those that come while it takes one the last', async () => {
  const [sizes, shown] = [new TerminalSizes(), console()]
  sizes.set(80, 24)
  expect(shown.taken).toEqual([])
  sizes.show(shown.resize)
  for (const columns of [90, 100, 110]) sizes.set(columns, 30)
  // The terminal does not say it.
  sizes.set(0, 0)
  shown.answer(true)
  await expect.poll(() => shown.taken).toEqual(['80x24', '110x30'])
  shown.answer(true)
  sizes.set(5000, 30)
  await expect.poll(() => shown.taken).toEqual(['80x24', '110x30', '1000x30'])
})

test('a size that is refused because of too many requests is passed on later', async () => {
  const sizes = new TerminalSizes()
  const taken: number[] = []
  sizes.set(80, 24)
  sizes.show(async ({ columns }) => {
    taken.push(columns)
    if (taken.length === 1) throw tooMany('later')
    return true
  })
  await expect.poll(() => taken).toEqual([80, 80])
})

test('a console without a size is not told another one, and the next console is', async () => {
  const [sizes, other, next] = [new TerminalSizes(), console(), console()]
  sizes.set(80, 24)
  sizes.show(other.resize)
  sizes.set(90, 24)
  other.answer(false)
  sizes.show(() => Promise.reject(new Error('the console has ended')))
  sizes.show(next.resize)
  await expect.poll(() => next.taken).toEqual(['90x24'])
  expect(other.taken).toEqual(['80x24'])
})
