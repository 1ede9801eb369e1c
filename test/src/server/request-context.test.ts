import { expect, test } from 'vitest'
import { compose, type RequestContext, type RequestStep } from '../../../src/server/request-context.ts'

const context = {} as RequestContext
const answering: RequestStep = () => ({ status: 200 })

test('steps run in their order, and each may change the answer of those after it', async () => {
  const order: string[] = []
  const named =
    (name: string): RequestStep =>
    async (_, next) => {
      order.push(`${name} begins`)
      const answer = await next()
      order.push(`${name} ends`)
      return answer
    }
  const run = compose([named('outer'), named('inner'), answering])
  expect(await run(context)).toEqual({ status: 200 })
  expect(order).toEqual(['outer begins', 'inner begins', 'inner ends', 'outer ends'])
})

test('a step that answers keeps the others from the request', () => {
  const unreachable: RequestStep = () => {
    throw new Error('not here')
  }
  expect(compose([answering, unreachable])(context)).toEqual({ status: 200 })
})

test('steps of which none answers are a defect', () => {
  expect(() => compose([(_, next) => next()])(context)).toThrow('No step has answered')
})
