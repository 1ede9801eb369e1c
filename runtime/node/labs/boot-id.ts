import { readFile } from 'node:fs/promises'
import { ignore } from '../../../src/async/ignore.ts'
import { readDurable, writeDurable } from '../storage/durable-file.ts'
import type { ServiceRecords } from '../storage/service-records.ts'

/** Made by the kernel at every boot; random(4). */
const source = '/proc/sys/kernel/random/boot_id'

/** Whether the computer was started again since the last service on this data directory, which is remembered there. */
export async function isRebooted(records: ServiceRecords): Promise<boolean> {
  const now = await readFile(source, 'utf8').then((text) => text.trim(), ignore('without it no reboot is known'))
  if (now === undefined) return false
  const file = records.pathOf('labs/boot-id')
  const before = (await readDurable(file, (text) => text.trim()))?.value
  if (before === now) return false
  await writeDurable(file, `${now}\n`).catch(ignore('the next start finds the same'))
  return before !== undefined
}
