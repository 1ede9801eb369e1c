import { randomId } from './random-id.ts'

/** Distinguishes this window from others of the same user. */
export const windowId: string = randomId()
