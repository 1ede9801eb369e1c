import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { requireEngine } from '../../../../runtime/node/drivers/container/engine.ts'
import { ImageMaker } from '../../../../runtime/node/drivers/container/image-maker.ts'
import { requireContainers } from '../../../support/container-image.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { testWith } from '../../../support/test-with.ts'

testWith(await requireContainers()).for(['layer.tar', 'image.tar'])(
  'a link that what reads an image has put in place of %s is not followed',
  async (name) => {
    const root = await freshDirectory()
    // Root of the namespaces is another user.
    await chmod(root, 0o755)
    const [secret, base, layer, skopeo] = ['secret', 'base', 'layer', 'skopeo'].map((it) => join(root, it)) as [
      ...[string, string, string, string],
    ]
    await writeFile(secret, 'secret')
    await writeFile(base, '')
    await mkdir(join(layer, 'upper'), { recursive: true })
    await writeFile(skopeo, `#!/bin/sh\nln -sf ${secret} /mnt/to/${name}\n`, { mode: 0o755 })
    const maker = new ImageMaker(join(root, 'images'), () => 0)
    const made = maker.make(
      { ...requireEngine(), skopeo, umoci: '/bin/true' },
      { base, layer, files: [], failure: 'No image' },
      undefined,
      {
        holding: (read) => read(),
        store: (content) => new Response(content).text(),
      },
    )
    await expect(made).rejects.toMatchObject({ status: 409, message: 'No image: a file is in the way' })
    expect(await readFile(secret, 'utf8')).toBe('secret')
  },
)
