import { AsyncLocalStorage } from 'node:async_hooks'
import type { Caller } from '../../src/auth/caller.ts'
import type { Config } from './config/config.ts'

const callers = new AsyncLocalStorage<Caller>()

/** Answers a request on behalf of its caller; see `AppOptions.within`. */
export const within = <T>(caller: Caller, answer: () => Promise<T>): Promise<T> => callers.run(caller, answer)

/**
 * Whether what is done now is done in local mode: the compute is in local mode, and no gateway or tunnel handed the request on.
 * Outside of requests (a node is opened again after a restart) the setting decides.
 */
export const callerIsLocal = ({ current }: Config): boolean => current.local && callers.getStore()?.isDirect !== false

/**
 * Whether the caller of the request under way may bring programs that the compute runs: an administrator with credentials, here
 * or at the gateway that handed the request on. False outside of requests.
 */
export const callerMayExecute = (): boolean => callers.getStore()?.mayExecute === true
