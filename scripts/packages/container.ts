import { mkdir, rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type DebOptions, packDeb, packNodeDeb } from './deb.ts'
import { inDirectory, manifest, run } from './program.ts'

/** The Debian of the image: that of the tests. */
const suite = 'bookworm'
/** What runs without a virtual machine: confinement, nats and filters. Images with emulators are made from this one. */
const included = ['bubblewrap', 'libslirp0', 'libpcap0.8', 'adduser', 'ca-certificates']
const hidden = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/info/*', '/usr/share/locale/*']
const shown = ['/usr/share/doc/*/copyright', '/usr/share/doc/patchbay*/*']
/** They are packed to be unpacked at once. */
const quickly = ['-Znone']

/**
 * Makes a container image as an OCI archive, from Debian packages alone: ours, and those of a Debian mirror; its path. It needs root,
 * buildah and mmdebstrap, and starts no container.
 */
export async function packContainer(out: string, { build }: Pick<DebOptions, 'build'> = {}): Promise<string> {
  const { version } = await manifest()
  return await inDirectory(async (directory) => {
    const options = { compression: quickly, ...(build !== undefined && { build }) }
    const debs = [await packDeb(directory, options), await packNodeDeb(directory, options)]
    const tree = join(directory, 'tree.tar')
    const inside = debs.map((it) => `/tmp/${basename(it)}`).join(' ')
    const paths = [...hidden.map((it) => `path-exclude=${it}`), ...shown.map((it) => `path-include=${it}`)]
    await run(
      'mmdebstrap',
      [
        ...['--variant=minbase', `--include=${included.join()}`, ...paths.map((it) => `--dpkgopt=${it}`)],
        `--customize-hook=copy-in ${debs.join(' ')} /tmp`,
        `--customize-hook=chroot "$1" dpkg --install ${inside}`,
        // Each container has a token of its own: that of its operator.
        `--customize-hook=rm "$1/etc/patchbay/token" ${inside.replaceAll('/tmp/', '"$1"/tmp/')}`,
        ...[suite, tree],
      ],
      // Its filters run by the python3 of the system, whatever comes first in PATH.
      { maxBuffer: 1 << 26, env: { ...process.env, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } },
    )
    const buildah = async (...args: string[]) => (await run('buildah', args)).stdout.trim()
    const container = await buildah('from', 'scratch')
    try {
      await buildah('add', '--quiet', container, tree, '/')
      const settings = ['PATCHBAY_HOST=0.0.0.0', 'PATCHBAY_DATA=/var/lib/patchbay']
      await buildah(
        'config',
        ...['--entrypoint', '["/usr/bin/patchbay"]', '--cmd', 'serve', '--user', 'patchbay', '--port', '3080'],
        ...['--volume', '/var/lib/patchbay', ...settings.flatMap((it) => ['--env', it])],
        ...['--label', `org.opencontainers.image.version=${version}`],
        container,
      )
      await mkdir(out, { recursive: true })
      const file = join(out, `patchbay-${version}.oci.tar`)
      await buildah('commit', '--quiet', '--disable-compression=false', container, `oci-archive:${file}.new`)
      await rename(`${file}.new`, file)
      return file
    } finally {
      await buildah('rm', container)
    }
  })
}
