import { randomUUID } from 'node:crypto'

/**
 * The header by which this process knows its own requests to computes: a service that is registered as a compute of itself would ask itself
 * again and again.
 */
export const ownHeader: readonly [name: string, value: string] = ['x-patchbay-process', randomUUID()]

export const isOwnRequest = ({ headers }: Request): boolean => headers.get(ownHeader[0]) === ownHeader[1]
