import { expect, test } from 'vitest'
import { ReadOrder } from '../../../../src/lib/async/read-order.ts'

test('an answer of an older read does not replace that of a newer one', async () => {
  const order = new ReadOrder<string>()
  const used: string[] = []
  const answers: ((answer: string | Promise<string>) => void)[] = []
  const read = (key: string) =>
    order.run(
      key,
      () => new Promise<string>((resolve) => answers.push(resolve)),
      (it) => void used.push(it),
    )
  const reads = [read('a'), read('a'), read('a'), read('b')]
  const [older, newer, last, other] = answers
  newer?.('newer')
  await reads[1]
  older?.('older')
  other?.('other')
  await Promise.all([reads[0], reads[3]])
  expect(used).toEqual(['newer', 'other'])
  last?.(Promise.reject(new Error('lost')))
  await expect(reads[2]).rejects.toThrow('lost')
  await order.run(
    'a',
    async () => 'next',
    (it) => void used.push(it),
  )
  expect(used).toEqual(['newer', 'other', 'next'])
})
