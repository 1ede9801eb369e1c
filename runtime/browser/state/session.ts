import { signal } from '@preact/signals'
import type { Session } from '../../../src/client/patchbay.ts'

/** The user of the page: `undefined` until the service has answered, `null` when it asks for credentials. */
export const session = signal<Session | undefined | null>(undefined)

/** Whether the user may change something. */
export const mayEdit = (): boolean => session.value?.role !== 'read'

/** Whether the user may change the service itself: computes and tokens. */
export const isAdministrator = (): boolean => session.value?.role === 'admin'
