import { readFileSync } from 'node:fs'
import { conflict } from '../../../../src/lib/errors/api-error.ts'

/** The profile that podman and others have for containers, from Debian's package golang-github-containers-common. */
export const profileFile = '/usr/share/containers/seccomp.json'

/** `linux.seccomp` of the OCI runtime specification. */
export type SeccompProfile = Readonly<Record<string, unknown>>

interface Rule {
  readonly names: readonly string[]
  readonly action: string
  readonly args?: readonly unknown[] | null
  readonly errnoRet?: number
  readonly includes?: Conditions
  readonly excludes?: Conditions
}
type Conditions = { readonly caps?: readonly string[]; readonly arches?: readonly string[] }

interface Profile {
  readonly defaultAction: string
  readonly defaultErrnoRet?: number
  readonly archMap: readonly { readonly architecture: string; readonly subArchitectures?: readonly string[] }[]
  readonly syscalls: readonly Rule[]
}

/** Names of this processor in the profile. */
const processors: Readonly<Partial<Record<NodeJS.Architecture, { name: string; id: string }>>> = {
  x64: { name: 'amd64', id: 'SCMP_ARCH_X86_64' },
  arm64: { name: 'arm64', id: 'SCMP_ARCH_AARCH64' },
}

/**
 * What no container may call, whatever the profile says: keys, because the kernel counts those of a user over all containers and a
 * session of nobody's starts without one; and what has often been a way into the kernel, and asks the capabilities of the host anyway.
 */
const refused = [
  ...['add_key', 'keyctl', 'request_key'],
  ...[
    'bpf',
    'io_uring_enter',
    'io_uring_register',
    'io_uring_setup',
    'lookup_dcookie',
    'perf_event_open',
    'userfaultfd',
  ],
]
const notPermitted = 1

/** The system calls that a container with these capabilities may make. 409 when the profile is not there. */
export function seccompOf(capabilities: readonly string[], file = profileFile): SeccompProfile {
  const { defaultAction, defaultErrnoRet, archMap, syscalls } = read(file)
  const processor = processors[process.arch]
  const holds = ({ caps = [], arches = [] }: Conditions = {}, any: boolean) =>
    any
      ? caps.some((it) => capabilities.includes(it)) || arches.some((it) => it === processor?.name)
      : caps.every((it) => capabilities.includes(it)) && (arches.length === 0 || arches.includes(processor?.name ?? ''))
  const own = archMap.find(({ architecture }) => architecture === processor?.id)
  return {
    defaultAction,
    ...(defaultErrnoRet !== undefined && { defaultErrnoRet }),
    architectures: own === undefined ? [] : [own.architecture, ...(own.subArchitectures ?? [])],
    syscalls: [
      { names: refused, action: 'SCMP_ACT_ERRNO', errnoRet: notPermitted },
      ...syscalls
        .filter(({ includes, excludes }) => holds(includes, false) && !holds(excludes, true))
        .map(({ names, action, args, errnoRet }) => ({
          ...{ names: names.filter((it) => !refused.includes(it)), action },
          ...(args && args.length > 0 && { args }),
          ...(errnoRet !== undefined && { errnoRet }),
        }))
        .filter(({ names }) => names.length > 0),
    ],
  }
}

function read(file: string): Profile {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Profile
  } catch (cause) {
    throw conflict(`Containers need ${file}: sudo apt-get install golang-github-containers-common`, { cause })
  }
}
