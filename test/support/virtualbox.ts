import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { standIn } from '../stand-in/virtualbox/build.ts'
import { World } from '../stand-in/virtualbox/world.ts'

export interface VirtualBoxWorld {
  readonly world: World
  /** Of a VBoxManage that is of this world only, whatever the environment says. */
  readonly path: string
}

/** A stand-in of VirtualBox in that directory; its `end` ends it. */
export async function virtualBoxWorld(directory: string): Promise<VirtualBoxWorld> {
  const programs = await standIn()
  const world = new World(join(directory, 'virtualbox'), programs)
  await world.serve()
  const path = join(directory, 'bin/VBoxManage')
  await mkdir(join(directory, 'bin'))
  const script = `#!/bin/sh\nVBOX_USER_HOME='${world.directory}' exec '${join(programs, 'VBoxManage')}' "$@"\n`
  await writeFile(path, script, { mode: 0o755 })
  return { world, path }
}
