import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ignore } from '../../../../src/async/ignore.ts'
import { startProgram } from '../../programs/start.ts'
import { findProgram } from '../../system/find-program.ts'

/**
 * Whether guests run under KVM here: on some virtual hosts the device opens, and a guest then hangs in its firmware. `unknown`
 * where it cannot be tried, or the host is too busy for an answer.
 */
export type KvmVerdict = 'runs' | 'hangs' | 'fails' | 'unknown'

/** A guest boots in a quarter of this on a host that is not busy, ms. */
const enoughMs = 1000
/** It may take as many times as long as without KVM, where it is much slower. */
const factor = 3
/** The guest without KVM ends within this, or nothing can be said, ms. */
const controlMs = 10_000
const keptMs = 10 * 60_000
const unknownMs = 30_000

let known: { readonly until: number; readonly verdict: Promise<KvmVerdict> } | undefined

/** The verdict on this host, which is kept for ten minutes. Never rejects. */
export function kvmVerdict(): Promise<KvmVerdict> {
  if (known !== undefined && Date.now() < known.until) return known.verdict
  const verdict = tryKvm(findProgram('qemu-system-x86_64'))
  const entry = { until: Date.now() + keptMs, verdict }
  known = entry
  void verdict.then((it) => {
    if (it === 'unknown' && known === entry) known = { until: Date.now() + unknownMs, verdict }
  })
  return verdict
}

/**
 * Boots a guest of one sector under KVM, and beside it the same without: the time that this one takes says how busy the host is.
 * The guest writes to the port by which QEMU ends.
 */
export async function tryKvm(emulator: string | undefined): Promise<KvmVerdict> {
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

async function compare(emulator: string, disk: string): Promise<KvmVerdict> {
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

/** What isa-debug-exit makes of what the guest writes: twice that and one. */
const written = 0x2a
const guestCode = written * 2 + 1

/** The exit code of an emulator with the guest; -1 when it was ended. */
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
