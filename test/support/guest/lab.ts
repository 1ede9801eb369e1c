import { randomUUID } from 'node:crypto'
import { attach, reserve } from '../lab.ts'
import type { TestService } from '../service.ts'
import { GuestShell } from './console.ts'
import { guestCommandLine, guestFiles, guestRam } from './files.ts'

/** Creates a machine that boots the test guest; its path. `words`: what its init is told, such as pb.ip=10.0.0.1/24. */
export async function createGuest(
  service: TestService,
  project: string,
  name: string,
  words: string,
  settings: Record<string, unknown> = {},
): Promise<string> {
  const { kernel, initrd } = await guestFiles()
  const node_id = randomUUID()
  await service.call('POST', `${project}/machine-emulator/nodes`, {
    ...{ name, node_id, platform: 'x86_64', ram: guestRam, process_priority: 'normal', kernel_image: kernel, initrd },
    kernel_command_line: guestCommandLine(`pb.host=${name} ${words}`),
    ...settings,
  })
  return `${project}/machine-emulator/nodes/${node_id}`
}

/** The shell of a guest that runs, at its prompt; `typed` is what makes it show that. */
export async function shellOf(service: TestService, node: string, typed = ''): Promise<GuestShell> {
  const { console } = await service.call<{ console: number }>('GET', node)
  const shell = await GuestShell.connect(console)
  shell.send(typed)
  await shell.ready()
  return shell
}

/** Links a port of each node. */
export async function link(
  service: TestService,
  project: string,
  [a, ofA]: readonly [node: string, adapter: number],
  [b, ofB]: readonly [node: string, adapter: number],
): Promise<void> {
  const [left, right] = [await reserve(service, project), await reserve(service, project)]
  await attach(service, a, left, right, ofA)
  await attach(service, b, right, left, ofB)
}
