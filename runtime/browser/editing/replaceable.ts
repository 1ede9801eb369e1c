import type { LabNode } from '../../../src/client/patchbay.ts'

/** Whether another node may better take its place: a placeholder cannot run, and says why. */
export const isReplaceable = ({ status, status_reason }: LabNode): boolean =>
  status === 'stopped' && status_reason !== null
