import type { PlanTask } from '../../plan/types.ts'

/** A task of one type. */
export type Task<T extends PlanTask['type']> = Extract<PlanTask, { readonly type: T }>
