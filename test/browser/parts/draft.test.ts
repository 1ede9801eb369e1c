import { expect, test } from 'vitest'
import { FieldDraft } from '../../../runtime/browser/parts/draft.ts'

/** A service that takes a value when the test says so. */
function slowService() {
  const sent: { readonly wanted: string; readonly answer: () => void; readonly refuse: () => void }[] = []
  const send = (wanted: string) => () =>
    new Promise<void>((resolve, reject) => {
      sent.push({ wanted, answer: resolve, refuse: () => reject(new Error('no')) })
    })
  return { sent, send }
}

test('a new name is shown while the service accepts it, so that the old one does not appear in between', async () => {
  const { sent, send } = slowService()
  const draft = new FieldDraft<string>()
  draft.value = 'R1 '
  const taken = draft.submit('R1', send('R1'))
  expect(draft.value).toBe('R1')
  sent[0]?.answer()
  await taken
  expect(draft.value).toBeUndefined()
})

test('a refused value is no longer shown', async () => {
  const { sent, send } = slowService()
  const draft = new FieldDraft<string>()
  const taken = draft.submit('R1', send('R1'))
  sent[0]?.refuse()
  await expect(taken).rejects.toThrow('no')
  expect(draft.value).toBeUndefined()
})

test('input during the request of an earlier value stays, and is sent after it', async () => {
  const { sent, send } = slowService()
  const draft = new FieldDraft<string>()
  const first = draft.submit('1', send('1'))
  draft.value = '10'
  sent[0]?.answer()
  await first
  expect(draft.value).toBe('10')
  const second = draft.submit('10', send('10'))
  sent[1]?.answer()
  await second
  expect([draft.value, sent.map(({ wanted }) => wanted)]).toEqual([undefined, ['1', '10']])
})

test('a field that loses the focus twice meanwhile sends its value once', async () => {
  const { sent, send } = slowService()
  const draft = new FieldDraft<string>()
  const both = [draft.submit('R1', send('R1')), draft.submit('R1', send('R1'))]
  for (const { answer } of sent) answer()
  await Promise.all(both)
  expect(sent).toHaveLength(1)
})
