import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { kinds } from './kinds/index.ts'
import { closedSchema, maybe, objectSchema, oneOf, Uuid } from './schema/fields.ts'

/** Kinds of node that start from images. */
export type ImageKindName = Extract<(typeof kinds)[number], { image: object }>['name']
export const imageKinds: readonly ImageKindName[] = kinds.flatMap((it) => ('image' in it ? it.name : []))

export const isImageKind = (word: string): word is ImageKindName => (imageKinds as readonly string[]).includes(word)

export type Image = Static<typeof Image>
export const Image = objectSchema('Image', 'An image that nodes of a kind can be given', {
  filename: Type.String({ description: 'Name of the file, without directories' }),
  path: Type.String({ description: 'Path relative to its directory of images: the name for nodes' }),
  md5sum: Type.String({ description: '32 hexadecimal digits' }),
  sha256: Type.Optional(
    Type.String({
      description: '64 hexadecimal digits. At a gateway absent for images of computes of earlier versions',
    }),
  ),
  filesize: Type.Integer({ description: 'Bytes' }),
  virtual_size: Type.Optional(
    Type.Integer({ description: 'Bytes of the disk that a guest sees, of a qcow2, VMDK or VDI' }),
  ),
})

/** The new name of an image. */
export type ImageRename = Static<typeof ImageRename>
export const ImageRename = closedSchema('ImageRename', 'The new name of an image', {
  path: Type.String({
    minLength: 1,
    maxLength: 4096,
    description: 'Name, with the directory if the image is in one',
  }),
})

/** Nodes of a project that start from an image. */
export type ImageUsers = Static<typeof ImageUsers>
export const ImageUsers = objectSchema('ImageUsers', 'Nodes of an open project that start from an image', {
  project_id: Uuid,
  nodes: Type.Array(Type.String(), { description: 'Their names' }),
})

/** The users of an image with one entry for each project. */
export function byProject(users: Iterable<ImageUsers>): ImageUsers[] {
  const names = new Map<string, string[]>()
  for (const { project_id, nodes } of users) {
    const known = names.get(project_id)
    if (known === undefined) names.set(project_id, [...nodes])
    else known.push(...nodes)
  }
  return [...names].map(([project_id, nodes]) => ({ project_id, nodes }))
}

/** Where an image is, and which nodes need it. */
export type ImageUse = Static<typeof ImageUse>
export const ImageUse = objectSchema('ImageUse', 'Where an image is, and which nodes need it', {
  path: Image.properties.path,
  used_by: Type.Optional(
    Type.Array(ImageUsers, {
      description:
        'Its nodes in open projects that the client sees; absent: a compute of an earlier version does not report them',
    }),
  ),
  compute_ids: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Only at a gateway: ids of the connected computes that have an image of this name',
    }),
  ),
})

const choice = <const V extends string>(values: readonly V[], description: string) =>
  maybe(oneOf(values, { description }))
const onOff = (description: string) => choice(['on', 'off'], description)
/** Powers of two from `first` to `last`. */
const powerOfTwo = (first: number, last: number, description: string) => {
  const values = Array.from({ length: Math.log2(last / first) + 1 }, (_, index) => first * 2 ** index)
  return maybe(oneOf(values, { expects: `a power of two from ${first} to ${last}`, description }))
}
const fullOnly = choice(['off', 'falloc', 'full'], 'Whether the space is allocated at once')

const tool = maybe(
  Type.String({
    minLength: 1,
    maxLength: 4096,
    description: 'One of img-binaries, by its path or its name. Default: the first one',
  }),
)
const diskPath = Type.String({
  minLength: 1,
  maxLength: 4096,
  description: 'Name among the images, at most one directory deep; in local mode also an absolute path',
})
const maxMb = 2 ** 26

const disk = <F extends string, O extends TProperties>(format: F, options: O) =>
  Type.Object(
    {
      qemu_img: tool,
      path: diskPath,
      format: Type.Literal(format),
      size: Type.Integer({ minimum: 1, maximum: maxMb, description: 'Size of the disk, MB (MiB)' }),
      ...options,
    },
    { additionalProperties: false },
  )

/** The options of each format; the tool gets no others. */
export const diskFormats = {
  qcow2: disk('qcow2', {
    preallocation: choice(['off', 'metadata', 'falloc', 'full'], 'What is allocated at once'),
    cluster_size: powerOfTwo(512, 2 ** 21, 'Bytes of a cluster'),
    refcount_bits: powerOfTwo(1, 64, 'Width of a reference count, bits'),
    lazy_refcounts: onOff('Faster writes, a repair after a crash'),
  }),
  qcow: disk('qcow', {}),
  raw: disk('raw', { preallocation: fullOnly }),
  vmdk: disk('vmdk', {
    subformat: choice(
      ['monolithicSparse', 'monolithicFlat', 'twoGbMaxExtentSparse', 'twoGbMaxExtentFlat', 'streamOptimized'],
      'Layout of the files',
    ),
    adapter_type: choice(['ide', 'lsilogic', 'buslogic', 'legacyESX'], 'Disk controller written into the image'),
    zeroed_grain: onOff('Efficient writes of zeros'),
  }),
  vdi: disk('vdi', { static: onOff('All space at once') }),
  vpc: disk('vpc', { subformat: choice(['dynamic', 'fixed'], 'fixed takes all space at once') }),
  qed: disk('qed', {
    cluster_size: powerOfTwo(2 ** 12, 2 ** 26, 'Bytes of a cluster'),
    table_size: powerOfTwo(1, 16, 'Clusters of an L1 or L2 table'),
  }),
  parallels: disk('parallels', { cluster_size: powerOfTwo(2 ** 16, 2 ** 26, 'Bytes of a cluster') }),
} as const
export type DiskFormat = keyof typeof diskFormats

/** A new disk image. */
export type DiskCreate = { [F in DiskFormat]: Static<(typeof diskFormats)[F]> }[DiskFormat]
export const DiskCreate = Type.Union(Object.values(diskFormats), {
  $id: 'DiskCreate',
  description: 'A new disk image, with the options of its format',
})

export type DiskExtend = Static<typeof DiskExtend>
export const DiskExtend = closedSchema('DiskExtend', 'A disk image, and how much it grows', {
  qemu_img: tool,
  path: diskPath,
  extend: Type.Integer({ minimum: 1, maximum: maxMb, description: 'MB (MiB) to add' }),
})
