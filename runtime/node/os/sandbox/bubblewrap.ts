import { dirname } from 'node:path'
import type { Operation } from './step.ts'

/** Arguments of bwrap(1), up to the program. With `isRoot` the program may still become another user. */
export function bubblewrapArguments(
  operations: readonly Operation[],
  { hasNetwork, isRoot }: { readonly hasNetwork: boolean; readonly isRoot: boolean },
): string[] {
  const made = new Set<string>()
  return [
    ...['--unshare-pid', '--unshare-ipc', ...(hasNetwork ? [] : ['--unshare-net']), '--die-with-parent'],
    ...operations.flatMap((operation) => [...parents(operation[2], made), ...argumentsOf(operation)]),
    ...['--cap-drop', 'ALL'],
    ...(isRoot ? ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'].flatMap((name) => ['--cap-add', name]) : []),
    ...['--chdir', '/', '--'],
  ]
}

/** The parent directories: those that bwrap creates by itself are for root only. */
function parents(path: string, made: Set<string>): string[] {
  const above = dirname(path)
  if (above === '/' || made.has(above)) return []
  made.add(above)
  return [...parents(above, made), '--perms', '0755', '--dir', above]
}

function argumentsOf([type, from, to]: Operation): string[] {
  switch (type) {
    case 'ro':
      return ['--ro-bind', from, to]
    case 'rw':
      return ['--bind', from, to]
    case 'dev':
      return ['--dev-bind', from, to]
    case 'link':
      return ['--symlink', from, to]
    case 'tmp':
      return ['--perms', '1777', '--tmpfs', to]
    case 'proc':
      return ['--proc', to]
  }
}
