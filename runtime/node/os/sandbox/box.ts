import { createHash } from 'node:crypto'
import { chmod, copyFile, mkdir, rm } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { type EmulatorUser, giveTree, letIn, permissions } from './user.ts'

/** The path at which a confined program sees the box of its node: files shared with the service, such as sockets. */
export const insideBox = '/run/patchbay'

/** The box of a node; it exists while the node runs confined. */
export const boxOf = (runDirectory: string, nodeId: string): string =>
  join(runDirectory, `box-${createHash('sha256').update(nodeId).digest('hex').slice(0, 16)}`)

/** Creates an empty box for a node. */
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

/** Makes the user of the program the owner of directories of its node, with their content. */
export async function give(user: EmulatorUser | undefined, ...paths: readonly string[]): Promise<void> {
  if (user === undefined) return
  for (const path of paths) await giveTree(path, user)
}

/** Makes the service the owner again, also of the files that the program has created. */
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
