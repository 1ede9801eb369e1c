import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { chmod, copyFile, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { TestService } from './service.ts'

/** A user of the host that is not root. */
export const otherUid = 1234
const asOther = [
  'data= before=',
  'for word; do [ "$before" = --data ] && data=$word; before=$word; done',
  `chown -R ${otherUid}:${otherUid} "$data"`,
  `exec setpriv --reuid ${otherUid} --regid ${otherUid} --clear-groups --inh-caps=-all -- "$@"`,
].join('; ')

/** The uppermost directory on the way that other users may not enter, such as /root. */
function closedTo(path: string): string | undefined {
  const above = dirname(path)
  return (above === path ? undefined : closedTo(above)) ?? ((statSync(path).mode & 1) === 0 ? path : undefined)
}

const project = join(import.meta.dirname, '../..')
const closed = closedTo(project)
/** Shows this project, and nothing else, below the directory that is closed. */
const open = [
  'set -e',
  'place=$(mktemp -d)',
  'mount --bind "$1" "$place"',
  'mount -t tmpfs -o mode=755 tmpfs "$0"',
  'mkdir -p "$1"',
  'mount --move "$place" "$1"',
  'rmdir "$place"',
  'shift',
  'exec "$@"',
].join('; ')

/** Has the service run as another user than root, also where that may not read this project. */
export const launcherOfOther = [
  ...(closed === undefined ? [] : ['unshare', '--mount', 'sh', '-c', open, closed, project]),
  ...['sh', '-c', asOther, 'sh'],
]

/** A service outside local mode whose emulators are confined. */
export async function confinedService(
  sandbox: string,
  launcher: readonly string[] = [],
  more: Record<string, unknown> = {},
): Promise<TestService> {
  const settings = { local: false, sandbox, require_sandbox: true, ...more }
  const service = await TestService.start({ ...settings, 'machine_emulator.acceleration': 'tcg' }, launcher)
  return service
}

/** Has images of IOU be known by their digest; the service is restarted for that. */
export async function letRun(
  service: TestService,
  sandbox: string,
  programs: Readonly<Record<string, string>>,
): Promise<void> {
  const executables: string[] = []
  for (const [name, program] of Object.entries(programs)) {
    const place = join(service.data, 'images/iou', name)
    await copyFile(program, place)
    await chmod(place, 0o755)
    executables.push(
      createHash('sha256')
        .update(await readFile(program))
        .digest('hex'),
    )
  }
  const settings = { local: false, sandbox, require_sandbox: true, executables }
  await service.configure({ ...settings, 'machine_emulator.acceleration': 'tcg' })
  await service.end()
  await service.restart()
}

/** What the kernel says of a process that is confined. */
export function confinementOf(pid: number): {
  readonly uid: number
  readonly capabilities: string
  readonly depth: number
} {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const field = (name: string) => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? ''
  return {
    uid: Number(field('Uid').split(/\s/)[0]),
    capabilities: field('CapBnd'),
    depth: field('NSpid').split(/\s+/).length,
  }
}
