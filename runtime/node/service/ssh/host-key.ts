import { join } from 'node:path'
import ssh2 from 'ssh2'
import { readDurable, writeDurable } from '../../engine/storage/durable-file.ts'
import { closeToOthers } from '../../engine/storage/secret-file.ts'

/** The key by which SSH clients know the service again, in `{data}/ssh-host-key`. It is made once. */
export async function hostKeyOf(data: string): Promise<string> {
  const path = join(data, 'ssh-host-key')
  const found = await readDurable(path, (text) => {
    const key = ssh2.utils.parseKey(text)
    if (key instanceof Error) throw key
    return text
  })
  const key = found?.value ?? ssh2.utils.generateKeyPairSync('ed25519', { comment: 'patchbay' }).private
  if (found === undefined) await writeDurable(path, key)
  for (const it of [path, `${path}.bak`]) await closeToOthers(it)
  return key
}
