import { createHash } from 'node:crypto'
import { chmod, copyFile, mkdir, rm } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { type EmulatorUser, giveTree, letIn, permissions } from './user.ts'

/** Where a confined program sees the box of its node: what it shares with the service, such as its sockets. */
export const insideBox = '/run/patchbay'

/** The box of a node, which is there while it runs confined. */
export const boxOf = (runDirectory: string, nodeId: string): string =>
  join(runDirectory, `box-${createHash('sha256').update(nodeId).digest('hex').slice(0, 16)}`)

/** Makes the box of a node anew, empty. */
export async function makeBox(runDirectory: string, nodeId: string): Promise<string> {
  const box = boxOf(runDirectory, nodeId)
  await rm(box, { recursive: true, force: true })
  await mkdir(box, { recursive: true, mode: 0o700 })
  return box
}

export const removeBox = (runDirectory: string, nodeId: string): Promise<void> =>
  rm(boxOf(runDirectory, nodeId), { recursive: true, force: true })

/** Puts a copy of a file that only we may read into a box; its path there. */
export async function putIntoBox(box: string, file: string, name: string): Promise<string> {
  await copyFile(file, join(box, name))
  await chmod(join(box, name), 0o400)
  return join(insideBox, name)
}

/** Gives directories of a node, and what is in them, to the user that its program runs as. */
export async function give(user: EmulatorUser | undefined, ...paths: readonly string[]): Promise<void> {
  if (user === undefined) return
  for (const path of paths) await giveTree(path, user)
}

/** Takes back what was given, with what the program has made in it. */
export async function takeBack(user: EmulatorUser | undefined, path: string): Promise<void> {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  if (user !== undefined) await giveTree(path, { name: String(uid), uid, gid })
}

/** Lets the user of confined programs read (or write) a file, and pass the directories to it from those that it sees. */
export async function letRead(
  user: EmulatorUser | undefined,
  file: string,
  seen: readonly string[],
  isWritable = false,
): Promise<void> {
  if (user === undefined) return
  await letIn(file, user, permissions.read | (isWritable ? permissions.write : 0))
  const root = seen.find((directory) => file.startsWith(directory + sep))
  if (root === undefined) return
  const steps = relative(root, dirname(file))
    .split(sep)
    .filter((step) => step !== '')
  let directory = root
  await letIn(directory, user, permissions.pass)
  for (const step of steps) {
    directory = join(directory, step)
    await letIn(directory, user, permissions.pass)
  }
}
