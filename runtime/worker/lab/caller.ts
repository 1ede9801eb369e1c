import { AsyncLocalStorage } from 'node:async_hooks'
import type { Caller } from '../../../src/model/access/caller.ts'

interface UnderWay {
  readonly name: string
  /** The request has ended: work that it began and that goes on is done by nobody. */
  isOver: boolean
}

const requests = new AsyncLocalStorage<UnderWay>()

/** Answers a request on behalf of its caller; see `AppOptions.runtime`. */
export function runAs<T>({ name }: Caller, answer: () => Promise<T>): Promise<T> {
  if (name === undefined) return answer()
  const request: UnderWay = { name, isOver: false }
  return requests.run(request, () =>
    answer().finally(() => {
      request.isOver = true
    }),
  )
}

/** The name of the caller of the request under way; undefined outside of requests. */
export function callerName(): string | undefined {
  const request = requests.getStore()
  return request?.isOver === false ? request.name : undefined
}
