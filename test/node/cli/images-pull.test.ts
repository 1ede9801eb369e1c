import { execFileSync, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { writeBusyboxImage } from '../../support/container-image.ts'
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

test('a name that no registry has is refused before anything is fetched', async () => {
  const patchbay = await CommandLine.of({ server: 'http://127.0.0.1:9' })
  for (const name of ['--help-me', 'a b', '$(reboot)']) {
    const { code, err } = await patchbay.run(['images', 'pull', '--', name])
    expect([code, err]).toEqual([64, expect.stringContaining('is no name of an image')])
  }
})
