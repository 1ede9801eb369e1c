import { open, realpath } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import type { ImageKindName } from '../../../../src/model/image.ts'
import { kindOf } from '../../../../src/model/kinds/node.ts'
import type { ImageLibrary } from './library.ts'

/** A node, as far as images are concerned. */
export interface ImageUser {
  readonly kind: string
  readonly name: string
  readonly project_id: string
  readonly projectPath: string
  /** Names or paths of the images that its settings name. */
  readonly images: readonly string[]
}

interface Looked {
  readonly kind: ImageKindName
  readonly library: ImageLibrary
  readonly nodes: Iterable<ImageUser>
}

/** A file without links; as it is given when there is none. */
export const realFile = (file: string): Promise<string> => realpath(file).catch(() => file)

/** The nodes that start from images of a kind, by the files of these without links. */
export async function nodesByImage({ kind, library, nodes }: Looked): Promise<ReadonlyMap<string, ImageUser[]>> {
  const users = new Map<string, ImageUser[]>()
  // Most nodes of a project start from few images.
  const known = new Map<string, Promise<string | undefined>>()
  const look = async (name: string, project: string) => {
    const found = await library.lookup(kind, name, project).catch(() => undefined)
    return found && realFile(found.file)
  }
  for (const node of nodes) {
    if (node.kind !== kind) continue
    const files = new Set<string>()
    for (const name of node.images) {
      const key = JSON.stringify([node.projectPath, name])
      const looked = known.get(key) ?? look(name, node.projectPath)
      known.set(key, looked)
      const file = await looked
      if (file !== undefined) files.add(file)
    }
    for (const file of files) {
      const those = users.get(file)
      if (those === undefined) users.set(file, [node])
      else those.push(node)
    }
  }
  return users
}

/** The users of an image file, as text: nodes, and disks that have it as their backing file or as a part. */
export async function usersOf({ file, ...looked }: Looked & { readonly file: string }): Promise<string[]> {
  const { kind, library } = looked
  const real = await realFile(file)
  const users = ((await nodesByImage(looked)).get(real) ?? []).map(({ name }) => `the node ${name}`)
  if (kindOf(kind).image?.isDisk !== true) return users
  for (const { file: other } of await library.all(kind)) {
    if (other === file) continue
    for (const below of await filesOf(other)) {
      if ((await realFile(below)) !== real) continue
      users.push(`the image ${basename(other)}`)
      break
    }
  }
  return users
}

const headerBytes = 21
/** Maximum length of the name of a backing file, bytes (docs/interop/qcow2.rst of QEMU). */
const longestName = 1023
/** The part of the descriptor of a VMDK that is read, bytes: a disk of 2 TB in extents of 2 GB takes 50 KB. */
const longestDescriptor = 2 ** 20
/** An extent in a descriptor: access, size, type and file (Virtual Disk Format 5.0 of VMware, 3.2). */
const extent = /^[ \t]*(?:RW|RDONLY|NOACCESS)[ \t]+\d+[ \t]+\w+[ \t]+"([^"\n]+)"/gim

/** The files that a disk is incomplete without: the backing file of a qcow2, and the extents of a VMDK that a descriptor lists. */
async function filesOf(file: string): Promise<string[]> {
  await using handle = await open(file).catch(() => undefined)
  if (handle === undefined) return []
  const beside = (name: string) => resolve(dirname(file), name)
  try {
    const header = Buffer.alloc(headerBytes)
    await handle.read(header, 0, headerBytes, 0)
    if (header.toString('latin1') === '# Disk DescriptorFile') {
      const { size } = await handle.stat()
      const text = Buffer.alloc(Math.min(size, longestDescriptor))
      await handle.read(text, 0, text.length, 0)
      return [...text.toString().matchAll(extent)].map(([, name = '']) => beside(name))
    }
    if (header.toString('latin1', 0, 4) !== 'QFI\u00fb') return []
    const [offset, length] = [Number(header.readBigUInt64BE(8)), header.readUInt32BE(16)]
    if (offset === 0 || length === 0 || length > longestName) return []
    const name = Buffer.alloc(length)
    await handle.read(name, 0, length, offset)
    return [beside(name.toString())]
  } catch {
    return []
  }
}
