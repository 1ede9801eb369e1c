import { expect } from 'vitest'
import { Shell } from './container-lab.ts'
import { start } from './lab.ts'
import type { TestService } from './service.ts'

const deep = `/root/${'d'.repeat(120)}/${'e'.repeat(60)}`

/** Settings of a container that has a file by them. */
export const withFile = { adapters: 0, files: [{ path: '/etc/app.conf', text: 'first\n' }] }

/** Changes files of a running container in each way that a layer knows. `word`: what it writes. */
export async function leaveTraces(service: TestService, node: string, word = 'kept'): Promise<void> {
  const shell = await Shell.open(service, node)
  const lines = [
    `echo ${word} >/root/kept; chown 1000:1000 /root/kept; chmod 4640 /root/kept; ln /root/kept /root/linked`,
    `ln -s kept /root/sym; mkdir -m 700 "/root/a b"; touch "/root/a b/.hidden"; mkdir -p ${deep}; echo deep >${deep}/file`,
    'rm /bin/wc; rm -r /var && mkdir /var; echo changed >/etc/app.conf; sync; echo -n done',
  ]
  for (const line of lines) expect(await shell.run(line)).toMatch(/^(done)?$/)
}

/** Starts a node, and expects what `leaveTraces` did. */
export async function expectTraces(service: TestService, node: string, word = 'kept'): Promise<void> {
  await start(service, node)
  const shell = await Shell.open(service, node)
  expect(await shell.run(`cat /root/kept /root/sym ${deep}/file /etc/app.conf`)).toBe(`${word}\n${word}\ndeep\nchanged`)
  expect(await shell.run('stat -c "%a %u %g %h" /root/kept /root/linked; stat -c %a "/root/a b"')).toBe(
    '4640 1000 1000 2\n4640 1000 1000 2\n700',
  )
  expect(await shell.run('ls -A "/root/a b" /var; ls /bin/wc')).toMatch(
    /^\/root\/a b:\n\.hidden\n+\/var:\n+ls: \/bin\/wc: No such/,
  )
}
