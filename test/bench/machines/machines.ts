import type { Row } from '../table.ts'
import { crowd } from './crowd.ts'
import { starts } from './starts.ts'

/** Machines beside the same emulators run without us, all in one run and in turns. */
export async function machines(): Promise<Row[]> {
  return [...(await starts()), ...(await crowd())]
}
