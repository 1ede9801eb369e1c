import { findProgram } from '../../../runtime/node/os/system/find-program.ts'
import type { Row } from '../table.ts'
import { confined } from './confined.ts'
import { crowd } from './crowd.ts'
import { guests } from './guests.ts'
import { starts } from './starts.ts'

/** Machines beside the same emulators run without us, all in one run and in turns. */
export async function machines(): Promise<Row[]> {
  const missing = ['qemu-system-x86_64', 'qemu-img'].find((name) => findProgram(name) === undefined)
  if (missing !== undefined) return [['machines', '-', `${missing} is not installed`]]
  return [...(await starts()), ...(await confined()), ...(await crowd()), ...(await guests())]
}
