import { expect, test } from 'vitest'
import { readText } from '../../../../src/compute/remote/answer.ts'
import { AnswerBudget } from '../../../../src/lib/http/answer-budget.ts'

const mib = 1 << 20

/** An answer that goes on for as long as it is read, until it is told to end; how many bytes were taken of it. */
function endless() {
  let taken = 0
  let isOver = false
  let leave = () => {}
  const left = new Promise<void>((resolve) => {
    leave = resolve
  })
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (isOver) return controller.close()
      taken += 16_384
      controller.enqueue(new Uint8Array(16_384).fill(0x20))
    },
    cancel: () => leave(),
  })
  return {
    response: new Response(body),
    taken: () => taken,
    left,
    end: () => {
      isOver = true
    },
  }
}

/** An answer that waits in the middle of what is too much without a reservation. */
function waiting() {
  let go = () => {}
  const gone = new Promise<void>((resolve) => {
    go = resolve
  })
  const pieces = [new Uint8Array(100_000), new Uint8Array(100_000)]
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const piece = pieces.shift()
        if (pieces.length === 0) await gone
        if (piece === undefined) return controller.close()
        controller.enqueue(piece)
      },
    },
    { highWaterMark: 0 },
  )
  return { response: new Response(body), go }
}

test('an endless answer is read up to its limit, and cancelled', async () => {
  const budget = new AnswerBudget({ bytes: 8 * mib })
  const { response, taken, left } = endless()
  expect(await readText(response, mib, budget)).toBeUndefined()
  await left
  expect(taken()).toBeLessThan(1.2 * mib)
  const announced = new Response(new ReadableStream(), { headers: { 'content-length': String(2 * mib) } })
  expect(await readText(announced, mib, budget)).toBeUndefined()
})

test('large answers wait for each other, and the one that waits too long is 503; small ones need no room', async () => {
  const clock = { now: 0 }
  const budget = new AnswerBudget({ bytes: 2 * mib, now: () => clock.now })
  const [a, b, c] = [waiting(), waiting(), waiting()]
  const [first, second] = [readText(a.response, mib, budget), readText(b.response, mib, budget)]
  const third = readText(c.response, mib, budget)
  c.go()
  expect(await readText(new Response('x'.repeat(60_000)), mib, budget)).toHaveLength(60_000)
  a.go()
  expect([(await first)?.length, (await third)?.length]).toEqual([200_000, 200_000])
  const held = [waiting(), waiting()]
  b.go()
  await second
  const reading = held.map(({ response }) => readText(response, mib, budget))
  const late = readText(waiting().response, mib, budget)
  const passing = setInterval(() => {
    clock.now += 1000
  }, 5)
  await expect(late).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '5' } })
  clearInterval(passing)
  for (const { go } of held) go()
  expect(await Promise.all(reading)).toHaveLength(2)
})

test('reserved room that is no longer used is free again after a minute', async () => {
  const clock = { now: 0 }
  const budget = new AnswerBudget({ bytes: mib, now: () => clock.now })
  await budget.reserve(mib)
  clock.now += 60_001
  const next = await budget.reserve(mib)
  next.release()
  await budget.reserve(mib)
})
