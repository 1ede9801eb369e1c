import { conflict } from '../../lib/errors/api-error.ts'

/** 409 for what is locked on the map, before it is deleted. `what`: the subject of the message, such as "The node R1". */
export function requireUnlocked({ locked }: { readonly locked: boolean }, what: string): void {
  if (locked) throw conflict(`${what} is locked and cannot be deleted: set locked to false first`, { code: 'locked' })
}
