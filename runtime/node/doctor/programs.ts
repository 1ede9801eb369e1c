import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Check } from '../../../src/model/host.ts'
import type { Settings } from '../config/settings.ts'
import { installHint } from '../kinds/dynamips/program.ts'
import { runProgram } from '../programs/start.ts'
import { findProgram } from '../system/find-program.ts'

const probeMs = 5000

interface Program {
  readonly name: string
  /** Names it may have. */
  readonly programs: readonly string[]
  readonly versionFlag: string
  readonly use: string
  readonly install: string
}

const programsOf = ({ dynamips }: Pick<Settings, 'dynamips'>): readonly Program[] => [
  {
    name: 'qemu-img',
    programs: ['qemu-img'],
    versionFlag: '--version',
    use: 'for the disks of machine-emulator nodes',
    install: 'sudo apt-get install qemu-utils',
  },
  {
    name: 'VirtualBox',
    programs: ['VBoxManage', 'vboxmanage'],
    versionFlag: '--version',
    use: 'for hypervisor nodes, where libvirt is not used',
    install: 'install VirtualBox from its own packages',
  },
  {
    name: 'dynamips',
    programs: [dynamips.path],
    versionFlag: '--version',
    use: 'for idle-PC values',
    install: installHint,
  },
  {
    name: 'setpriv',
    programs: ['setpriv'],
    versionFlag: '--version',
    use: 'ends emulators with the keeper, should that be killed',
    install: 'sudo apt-get install util-linux',
  },
]

/** The programs that some labs need. None of them is needed by all, so what is missing is a warning. */
export function programChecks(settings: Pick<Settings, 'dynamips'>, signal?: AbortSignal): Promise<Check[]> {
  return Promise.all(programsOf(settings).map((program) => check(program, signal)))
}

async function check(
  { name, programs: names, versionFlag, use, install }: Program,
  signal: AbortSignal | undefined,
): Promise<Check> {
  const path = names.map((it) => findProgram(it)).find((it) => it !== undefined)
  if (path === undefined) return { name, status: 'warning', found: `not found; ${use}`, fix: install }
  const version = await firstLine(path, versionFlag, signal)
  return { name, status: 'ok', found: version === '' ? path : `${version}, ${path}`, fix: null }
}

async function firstLine(path: string, flag: string, signal: AbortSignal | undefined): Promise<string> {
  // dynamips writes a log where it is run, even when it is only asked for its version.
  const cwd = await mkdtemp(join(tmpdir(), 'patchbay-doctor-'))
  try {
    const { stdout } = await runProgram(path, [flag], { cwd, ms: probeMs, ...(signal !== undefined && { signal }) })
    return stdout.trim().split('\n')[0]?.slice(0, 100) ?? ''
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
}
