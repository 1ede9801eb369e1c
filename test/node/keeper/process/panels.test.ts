import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { requireEngine } from '../../../../runtime/node/drivers/container/engine.ts'
import { panelCommand } from '../../../../runtime/node/drivers/container/holder.ts'
import { Panels } from '../../../../runtime/node/keeper/process/panels.ts'
import { callNumbers } from '../../../../runtime/node/os/sandbox/system-calls.ts'
import { requireContainers } from '../../../support/container-image.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { processesWith } from '../../../support/processes.ts'
import { requireRoot } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'

/** Runs a command in a user namespace with all ids, which may have so many namespaces of users in it. */
const limited = `
my ($unshare, $limit, @command) = @ARGV; my $own = $$;
pipe(my $made, my $make); pipe(my $mapped, my $map);
if (!fork) {
  sysread($made, my $byte, 1);
  for ('uid_map', 'gid_map') { open(my $f, '>', "/proc/$own/$_"); syswrite $f, '0 0 4294967295' }
  syswrite $map, 'x'; exit }
syscall($unshare + 0, 0x10000000) >= 0 or die "unshare: $!"; syswrite $make, 'x'; sysread($mapped, my $byte, 1); wait;
open(my $f, '>', '/proc/sys/user/max_user_namespaces'); syswrite $f, $limit; close $f;
exec { $command[0] } @command`

function panels() {
  const log = vi.fn<(message: string) => void>()
  return { log, panels: new Panels(log) }
}

describeWith(await requireContainers(), requireRoot())('a panel', () => {
  /** A panel where the kernel allows so many namespaces of users. */
  async function openWithin(limit: number) {
    const { log, panels: all } = panels()
    const { command, args } = panelCommand(requireEngine().ids)
    const words = ['-e', limited, callNumbers(['unshare']) ?? '', String(limit), command, ...args]
    return { log, panel: await all.open({ command: '/usr/bin/perl', args: words }) }
  }

  test('is not had where the namespaces of a container would not fit into it', async () => {
    const { log, panel } = await openWithin(2)
    expect(panel).toBeUndefined()
    expect(log).toHaveBeenCalledWith(expect.stringContaining('a third user namespace: No space left on device'))
  })

  test('is had where they do', async () => {
    expect((await openWithin(3)).panel?.descriptors).toHaveLength(2)
  })
})

test('a panel that failed is tried again after a minute', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { log, panels: all } = panels()
  const directory = await freshDirectory()
  const script = join(directory, 'panel')
  const open = () => all.open({ command: '/bin/sh', args: [script] })
  await writeFile(script, 'echo first >&2')
  expect(await open()).toBeUndefined()
  await writeFile(script, 'echo second >&2')
  expect(await open()).toBeUndefined()
  vi.advanceTimersByTime(60_000)
  await open()
  expect(log.mock.calls.map(([message]) => message.split(': ').at(-1))).toEqual(['first', 'second'])
})

test('a panel that takes too long is given up, with all that its program has started', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { log, panels: all } = panels()
  const opened = all.open({ command: '/bin/sh', args: ['-c', 'sleep 7533; true'] })
  while (!processesWith('sleep 7533').some(({ args }) => args === 'sleep 7533')) await setImmediate()
  vi.advanceTimersByTime(10_000)
  expect(await opened).toBeUndefined()
  expect(log).toHaveBeenCalledWith(expect.stringContaining('took longer than 10 s'))
})
