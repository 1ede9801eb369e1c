import { chmod, copyFile, cp, mkdir, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { standIn } from '../stand-in/iou/build.ts'
import { TestLibvirt } from '../support/libvirt.ts'

/** Packages that examples/guests/make.sh has downloaded are kept for the next run. */
const packages = join(import.meta.dirname, '../../node_modules/.cache/patchbay-documents/packages')

export interface Prepared {
  /** Settings of the service, as environment variables. */
  readonly env?: NodeJS.ProcessEnv
  /** After the page. */
  readonly done?: () => Promise<void>
}

/** What a reader has to bring for a page, by the name of its file. `cwd`: where its commands run; `home`: their HOME. */
export const prepare: Readonly<Record<string, (cwd: string, home: string) => Promise<Prepared>>> = {
  'docs/containers.md': withPackages,
  'docs/machines.md': withPackages,
  'docs/tutorial.md': withPackages,

  async 'docs/routers.md'(cwd, home) {
    const image = join(cwd, 'i86bi-linux-l3.bin')
    await copyFile(await standIn(), image)
    await chmod(image, 0o755)
    await writeFile(join(home, '.iourc'), `[license]\n${hostname()} = 0123456789abcdef;\n`)
    return {}
  },

  async 'docs/hypervisors.md'(_, home) {
    // The system's libvirt runs guests as a user of its own, who has to pass here.
    await chmod(home, 0o711)
    const libvirt = await TestLibvirt.start()
    await libvirt.define(`<domain type="qemu"><name>debian12</name><memory unit="MiB">64</memory>
      <os><type arch="x86_64">hvm</type></os>
      <devices>
        <interface type="null"><model type="virtio"/></interface>
        <interface type="null"><model type="virtio"/></interface>
        <serial type="pty"/>
      </devices></domain>`)
    return { env: { PATCHBAY_HYPERVISOR_LIBVIRT_URI: libvirt.uri }, done: () => libvirt.close() }
  },
}

/** For pages that make guests. */
async function withPackages(cwd: string): Promise<Prepared> {
  const used = join(cwd, 'guests/packages')
  await mkdir(packages, { recursive: true })
  await mkdir(join(cwd, 'guests'))
  await cp(packages, used, { recursive: true })
  return { done: () => cp(used, packages, { recursive: true }) }
}
