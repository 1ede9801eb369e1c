import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { requireContainers, writeBusyboxImage } from '../../support/container-image.ts'
import { freePorts } from '../../support/ports.ts'
import { requireProgram } from '../../support/require.ts'
import { TestService } from '../../support/service.ts'
import { testWith } from '../../support/test-with.ts'

const port = freePorts(1)

/** A registry of our own with the image `labs/shell:1.0`; its name there. */
async function startRegistry(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-registry-'))
  const image = join(directory, 'shell.tar')
  const config = join(directory, 'config.yml')
  await writeFile(
    config,
    `version: 0.1
log: { level: error }
storage: { filesystem: { rootdirectory: ${directory}/blobs } }
http: { addr: "127.0.0.1:${port}" }
`,
  )
  const registry = spawn('docker-registry', ['serve', config], { stdio: 'ignore' })
  onTestFinished(async () => {
    registry.kill('SIGKILL')
    await rm(directory, { recursive: true, force: true })
  })
  const isThere = () =>
    fetch(`http://127.0.0.1:${port}/v2/`).then(
      ({ ok }) => ok,
      () => false,
    )
  await expect.poll(isThere).toBe(true)
  await writeBusyboxImage(image)
  const name = `127.0.0.1:${port}/labs/shell:1.0`
  const tls = '--dest-tls-verify=false'
  execFileSync('skopeo', ['--insecure-policy', 'copy', '-q', tls, `docker-archive:${image}`, `docker://${name}`])
  return name
}

const needed = ['skopeo', 'docker-registry', 'busybox', 'tar'].map(requireProgram)

testWith(...needed)('images of a registry are fetched and pushed, and what it does not have is said', async () => {
  const [name, service] = [await startRegistry(), await TestService.start()]
  const patchbay = await CommandLine.of({ server: service.url })
  const pulled = await patchbay.run(['images', 'pull', name, '--insecure', '--json'])
  expect(pulled.code).toBe(0)
  const image = `127.0.0.1_${port}_labs_shell_1.0.tar`
  expect(JSON.parse(pulled.out)).toMatchObject({ images: [{ image, kind: 'container' }] })
  const images = await service.call<{ path: string }[]>('GET', '/v2/compute/container/images')
  expect(images.map(({ path }) => path)).toEqual([image])
  const again = await patchbay.run(['images', 'pull', name, '--insecure'])
  expect(again.out).toContain(`${image}: already on the service`)
  const missing = await patchbay.run(['images', 'pull', name.replace('1.0', '2.0'), '--insecure'])
  expect(missing.code).toBe(3)
  expect(missing.err).toMatch(/labs\/shell:2\.0: .*manifest unknown/)
  const plain = await patchbay.run(['images', 'pull', name])
  expect(plain.code).toBe(3)
  expect(plain.err).toMatch(/HTTP response to HTTPS client/)
})

const containers = await requireContainers()

testWith(containers, ...needed)(
  'up fetches what a lab of another program needs, says so, and why it cannot',
  async () => {
    const [name, service] = [await startRegistry(), await TestService.start({ 'pc.engine': 'embedded' })]
    const patchbay = await CommandLine.of({ server: service.url })
    await mkdir(join(patchbay.home, '.config/containers'), { recursive: true })
    const isPlain = (registry: string) =>
      patchbay.file('.config/containers/registries.conf', `[[registry]]\nlocation = "${registry}"\ninsecure = true\n`)
    await isPlain(`127.0.0.1:${port}`)
    await patchbay.file(
      'one.clab.yml',
      `name: one\ntopology:\n  nodes:\n    h1: { kind: linux, image: "${name}" }\n  links: []\n`,
    )
    const refused = await patchbay.run(['up', 'one.clab.yml', '--no-pull'])
    expect([refused.code, refused.err]).toEqual([3, expect.stringContaining(`patchbay images pull ${name}`)])
    const up = await patchbay.run(['up', 'one.clab.yml'])
    expect([up.code, up.err]).toEqual([0, expect.stringContaining(`Images to fetch: ${name}\n`)])
    const again = await patchbay.run(['up', 'one.clab.yml'])
    expect([again.code, again.err]).toEqual([0, expect.not.stringContaining('Images to fetch')])

    // A registry that wants a log-in.
    const closed = createServer((_, response) => {
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="labs"' }).end()
    })
    onTestFinished(() => void closed.close())
    await once(closed.listen(0, '127.0.0.1'), 'listening')
    const at = `127.0.0.1:${(closed.address() as AddressInfo).port}`
    await isPlain(at)
    const properties = { image: `${at}/labs/secret:1`, adapters: 1 }
    const node = { node_id: '7a3e33b7-6f2c-4d05-9a5c-0f5a2d7c1e11', name: 'h1', node_type: 'docker', properties }
    // The file of a project is one line.
    await patchbay.file(
      'two.gns3',
      JSON.stringify({ name: 'two', revision: 9, topology: { nodes: [node], links: [], drawings: [] } }),
    )
    const unknown = await patchbay.run(['up', 'two.gns3'])
    expect(unknown.code).toBe(3)
    expect(unknown.err).toMatch(new RegExp(`${at}/labs/secret:1: [^]*"skopeo login ${at}" logs in`))
    const partial = await patchbay.run(['up', 'two.gns3', '--partial'])
    expect([partial.code, partial.err]).toEqual([7, expect.stringContaining(`${at}/labs/secret:1: `)])
  },
)

test('a name that no registry has is refused before anything is fetched', async () => {
  const patchbay = await CommandLine.of({ server: 'http://127.0.0.1:9' })
  for (const name of ['--help-me', 'a b', '$(reboot)']) {
    const { code, err } = await patchbay.run(['images', 'pull', '--', name])
    expect([code, err]).toEqual([64, expect.stringContaining('is no name of an image')])
  }
})
