import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cpio } from './cpio.ts'
import { guestCommandLine, guestFiles } from './files.ts'

/** TCP port of the service in the guest. */
export const appliancePort = 3080

export interface ApplianceGuest {
  readonly kernel: string
  readonly initrd: string
  readonly commandLine: string
}

/** The test guest with something in it that answers as a compute of that version; its files are in the directory. */
export async function applianceGuest(
  directory: string,
  { version, address, host }: { version: string; address: string; host: string },
): Promise<ApplianceGuest> {
  const files = await guestFiles()
  const guest = { kernel: join(directory, 'vmlinux'), initrd: join(directory, 'initrd.img') }
  await copyFile(files.kernel, guest.kernel)
  const program = (path: string, content: Buffer | string) =>
    ({ path, type: 'file', mode: 0o755, content: Buffer.from(content) }) as const
  const own = cpio([
    program('init', init(host)),
    program('init.guest', await readFile(join(import.meta.dirname, 'init.sh'))),
    program('responder', await readFile(join(import.meta.dirname, 'responder.sh'))),
    program('version', `${version}\n`),
  ])
  // The kernel unpacks one archive after the other; what comes later counts.
  await writeFile(guest.initrd, Buffer.concat([await readFile(files.initrd), own]))
  return { ...guest, commandLine: guestCommandLine(`pb.host=appliance pb.ip=${address}`) }
}

/** It shows itself to the host, which knows its address from then on, as one would that asks for a lease. */
const init = (host: string): string => `#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
(
  until /bin/busybox ping -c 1 -W 1 ${host}; do /bin/busybox sleep 1; done
  exec /bin/busybox nc -ll -p ${appliancePort} -e /responder
) >/dev/null 2>&1 &
exec /bin/busybox sh /init.guest
`
