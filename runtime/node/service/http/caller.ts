import { AsyncLocalStorage } from 'node:async_hooks'
import type { Caller } from '../../../../src/model/access/caller.ts'
import type { Config } from '../config/config.ts'

interface UnderWay {
  readonly caller: Caller
  /** The request has ended: work that it began and that goes on keeps the rights of its caller, but is done by nobody. */
  isOver: boolean
}

const callers = new AsyncLocalStorage<UnderWay>()

/** Answers a request on behalf of its caller; see `AppOptions.runtime`. */
export function runAs<T>(caller: Caller, answer: () => Promise<T>): Promise<T> {
  // Whoever has no name and no rights beside those of the mode is the same as none; most requests are of such a caller.
  if (caller.isDirect && !caller.mayExecute && caller.name === undefined) return answer()
  const request: UnderWay = { caller, isOver: false }
  return callers.run(request, () =>
    answer().finally(() => {
      request.isOver = true
    }),
  )
}

/** Who has what is done now done: the name of the caller of the request under way. Undefined outside of requests. */
export function callerName(): string | undefined {
  const request = callers.getStore()
  return request?.isOver === false ? request.caller.name : undefined
}

/**
 * Whether what is done now is done in local mode: the compute is in local mode, and no gateway or tunnel handed the request on.
 * Outside of requests (a node is opened again after a restart) the setting decides.
 */
export const callerIsLocal = ({ current }: Config): boolean =>
  current.local && callers.getStore()?.caller.isDirect !== false

/**
 * Whether the caller of the request under way may bring programs that the compute runs: an administrator with credentials, here
 * or at the gateway that handed the request on. False outside of requests.
 */
export const callerMayExecute = (): boolean => callers.getStore()?.caller.mayExecute === true
