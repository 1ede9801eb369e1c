import { signal } from '@preact/signals'
import type { LabProject, Session } from '../../../src/client/patchbay.ts'

/** The user of the page: `undefined` until the service has answered, `null` when it asks for credentials. */
export const session = signal<Session | undefined | null>(undefined)

/** As what a service knows everybody whom it asks for no credentials. */
export const nameOfAnybody = 'anybody'

/** Whether the service asks nobody who they are. */
export const isOpen = (given: Session | null | undefined): boolean =>
  given?.name === nameOfAnybody && given.expires_at === null

/** Whether the user may change something. */
export const mayEdit = (): boolean => session.value?.role !== 'read'

/** Whether the user may change the service itself: computes and tokens. */
export const isAdministrator = (): boolean => session.value?.role === 'admin'

/** Whether the user may make labs: who has some labs alone may only if their names begin alike. */
export const mayMakeLabs = (): boolean =>
  mayEdit() && (hasAllLabs() || session.value?.projects?.some((it) => it.endsWith('*')) === true)

/** Whether the user sees all labs. A student of a class has one, and nothing to do with the service. */
export const hasAllLabs = (): boolean => session.value?.projects === undefined

/** Whether the user sees a lab on the wall of its class, so that it need not be among all others. */
export const isOnWall = (lab: Pick<LabProject, 'class'>): boolean =>
  lab.class !== undefined && isAdministrator() && hasAllLabs()
