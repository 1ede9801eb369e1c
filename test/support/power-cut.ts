import { readdirSync, readlinkSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { onTestFinished } from 'vitest'

/**
 * What a power cut would leave of directories: the names that each had when it was last synced (fsync(2)). Watches until the test
 * ends; `onSync` hears of every sync.
 */
export async function watchSyncs(
  onSync: () => void = () => {},
): Promise<(directory: string) => readonly string[] | undefined> {
  const synced = new Map<string, readonly string[]>()
  const handle = await open('/')
  const methods = Object.getPrototypeOf(handle) as { sync(this: { readonly fd: number }): Promise<void> }
  await handle.close()
  const { sync } = methods
  methods.sync = async function () {
    const path = readlinkSync(`/proc/self/fd/${this.fd}`)
    const names = namesIn(path)
    await sync.call(this)
    onSync()
    if (names !== undefined) synced.set(path, names)
  }
  onTestFinished(() => {
    methods.sync = sync
  })
  return (directory) => synced.get(directory)
}

function namesIn(path: string): readonly string[] | undefined {
  try {
    return readdirSync(path)
  } catch {
    // A file.
    return undefined
  }
}
