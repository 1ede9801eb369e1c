import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { startProgram } from '../../os/programs/start.ts'
import { findProgram } from '../../os/system/find-program.ts'

/**
 * Whether guests run under KVM here: on some virtual hosts the device opens, and guests then hang in their firmware. `unknown`
 * when the test cannot run, or the host is too busy for a result.
 */
export type KvmState = 'runs' | 'hangs' | 'fails' | 'unknown'

/** Minimum wait for the guest under KVM, ms. It boots in a quarter of this on an idle host. */
const enoughMs = 1000
/** It may take this many times as long as the guest without KVM, which is much slower on an idle host. */
const factor = 3
/** Timeout of the guest without KVM, ms; after it the result is `unknown`. */
const controlMs = 10_000
const keptMs = 10 * 60_000
const unknownMs = 30_000

let known: { readonly until: number; readonly state: Promise<KvmState> } | undefined

/** The state of KVM on this host, cached for ten minutes. Never rejects. */
export function kvmState(): Promise<KvmState> {
  if (known !== undefined && Date.now() < known.until) return known.state
  const state = tryKvm(findProgram('qemu-system-x86_64'))
  const entry = { until: Date.now() + keptMs, state }
  known = entry
  void state.then((it) => {
    if (it === 'unknown' && known === entry) known = { until: Date.now() + unknownMs, state }
  })
  return state
}

/**
 * Boots a guest of one sector under KVM, and at the same time without: the second shows how busy the host is. The guest writes to
 * the port of isa-debug-exit, which ends QEMU.
 */
export async function tryKvm(emulator: string | undefined): Promise<KvmState> {
  if (emulator === undefined || process.arch !== 'x64') return 'unknown'
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-kvm-')).catch(() => undefined)
  if (directory === undefined) return 'unknown'
  try {
    const disk = join(directory, 'disk')
    await writeFile(disk, bootDisk())
    return await compare(emulator, disk)
  } catch {
    return 'unknown'
  } finally {
    await rm(directory, { recursive: true, force: true }).catch(ignore('a small temporary file may stay'))
  }
}

async function compare(emulator: string, disk: string): Promise<KvmState> {
  const over = new AbortController()
  const start = performance.now()
  const guest = boot(emulator, 'kvm', disk, over.signal)
  const control = boot(emulator, 'tcg', disk, over.signal)
  const within = (ms: number) => pause(Math.max(0, ms), undefined, { signal: over.signal }).catch(() => undefined)
  try {
    const first = await Promise.race([guest, control.then(() => undefined), within(controlMs)])
    if (first !== undefined) return first === guestCode ? 'runs' : 'fails'
    const took = performance.now() - start
    if (took >= controlMs || (await control) !== guestCode) return 'unknown'
    const left = Math.max(enoughMs, factor * took) - took
    const second = await Promise.race([guest, within(left)])
    if (second === undefined) return 'hangs'
    return second === guestCode ? 'runs' : 'fails'
  } finally {
    over.abort()
    await Promise.all([guest, control])
  }
}

/** The exit code of isa-debug-exit is twice the written value plus one. */
const written = 0x2a
const guestCode = written * 2 + 1

/** The exit code of an emulator that runs the guest; -1 when it was killed. */
function boot(emulator: string, accelerator: string, disk: string, signal: AbortSignal): Promise<number> {
  const args = [
    ...['-accel', accelerator, '-machine', 'pc', '-m', '16', '-nodefaults', '-no-user-config', '-display', 'none'],
    ...['-net', 'none', '-drive', `file=${disk},format=raw,if=ide,snapshot=on`],
    ...['-device', 'isa-debug-exit,iobase=0x501,iosize=2'],
  ]
  return new Promise((resolve) => {
    const child = startProgram(emulator, args, { stdio: 'ignore' })
    const end = () => void child.kill('SIGKILL')
    signal.addEventListener('abort', end, { once: true })
    child.once('error', () => resolve(-1))
    child.once('exit', (code) => {
      signal.removeEventListener('abort', end)
      resolve(code ?? -1)
    })
  })
}

/** mov dx, 0x501; mov al, 0x2a; out dx, al; hlt; jmp $-1 */
function bootDisk(): Buffer {
  const disk = Buffer.alloc(64 << 10)
  Buffer.from('ba0105b02aeef4ebfd', 'hex').copy(disk)
  disk.writeUInt16LE(0xaa55, 510)
  return disk
}
