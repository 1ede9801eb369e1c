import { v4 } from 'uuid'

/** Distinguishes this window from others of the same user. */
export const windowId: string = v4()
