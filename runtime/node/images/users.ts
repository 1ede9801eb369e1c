import { open, realpath } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { kindOf } from '../../../src/kinds/node.ts'
import type { ImageKindName } from '../../../src/model/image.ts'
import type { ImageLibrary } from './library.ts'

/** A node, as far as images are concerned. */
export interface ImageUser {
  readonly kind: string
  readonly name: string
  readonly projectPath: string
  /** Names or paths of the images that its settings name. */
  readonly images: readonly string[]
}

/** The users of an image file, as text: nodes, and disks with it as their backing file. */
export async function usersOf(
  image: Readonly<{ kind: ImageKindName; file: string; library: ImageLibrary; nodes: Iterable<ImageUser> }>,
): Promise<string[]> {
  const { kind, file, library, nodes } = image
  const real = await realpath(file).catch(() => file)
  const isIt = async (other: string) => (await realpath(other).catch(() => other)) === real
  const users: string[] = []
  for (const node of nodes) {
    if (node.kind !== kind) continue
    for (const name of node.images) {
      const found = await library.lookup(kind, name, node.projectPath).catch(() => undefined)
      if (found === undefined || !(await isIt(found.file))) continue
      users.push(`the node ${node.name}`)
      break
    }
  }
  if (kindOf(kind).image?.isDisk !== true) return users
  for (const { file: other } of await library.all(kind)) {
    const base = await baseOf(other)
    if (base !== undefined && other !== file && (await isIt(base))) users.push(`the image ${basename(other)}`)
  }
  return users
}

const headerBytes = 20
/** Maximum length of the name of a backing file, bytes (docs/interop/qcow2.rst of QEMU). */
const longestName = 1023

/** The backing file of a qcow2 image; undefined without one, and for other formats. */
async function baseOf(file: string): Promise<string | undefined> {
  await using handle = await open(file).catch(() => undefined)
  if (handle === undefined) return undefined
  try {
    const header = Buffer.alloc(headerBytes)
    await handle.read(header, 0, headerBytes, 0)
    if (header.toString('latin1', 0, 4) !== 'QFI\u00fb') return undefined
    const [offset, length] = [Number(header.readBigUInt64BE(8)), header.readUInt32BE(16)]
    if (offset === 0 || length === 0 || length > longestName) return undefined
    const name = Buffer.alloc(length)
    await handle.read(name, 0, length, offset)
    return resolve(dirname(file), name.toString())
  } catch {
    return undefined
  }
}
