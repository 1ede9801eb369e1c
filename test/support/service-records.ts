import { ServiceRecords } from '../../runtime/node/engine/storage/service-records.ts'
import { freshDirectory } from './directory.ts'

export interface TestRecords {
  readonly records: ServiceRecords
  readonly data: string
  /** What was logged, whatever its level. */
  readonly said: string[]
}

/** The records of a service in a data directory, in a fresh one if none is given. */
export async function openRecords({
  data,
  minFreeMb = 0,
}: {
  data?: string
  minFreeMb?: number
} = {}): Promise<TestRecords> {
  const directory = data ?? (await freshDirectory())
  const said: string[] = []
  const say = (_: object, message: string) => void said.push(message)
  const log = { debug: say, info: say, warn: say, error: say }
  return {
    records: await ServiceRecords.open({ data: directory, minFreeMb: () => minFreeMb, log }),
    data: directory,
    said,
  }
}
