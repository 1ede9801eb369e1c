import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { isUuid } from '../../../../src/model/schema/fields.ts'
import { readDurable, writeDurable } from '../../engine/storage/durable-file.ts'

/** The id of this compute for gateways. It is made once and stored in the data directory. */
export async function computeIdOf(data: string): Promise<string> {
  const path = join(data, 'compute-id')
  const found = await readDurable(path, (text) => {
    if (isUuid(text.trim())) return text.trim()
    throw new Error('not an id')
  })
  if (found !== undefined) return found.value
  const id = randomUUID()
  await writeDurable(path, `${id}\n`)
  return id
}
