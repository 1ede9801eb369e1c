import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { expect, onTestFinished, type TestContext } from 'vitest'
import { findProgram } from '../../runtime/node/os/system/find-program.ts'
import { packContainer } from '../../scripts/packages/container.ts'
import { callsAt } from '../support/calls.ts'
import { createLab, startPcs } from '../support/lab.ts'
import { freePort, portArguments } from '../support/ports.ts'
import { requireDevices, requireThing } from '../support/require.ts'
import { testWith } from '../support/test-with.ts'

const run = promisify(execFile)
const absent = ['buildah', 'mmdebstrap', 'dpkg-deb', 'strip'].filter((name) => findProgram(name) === undefined)
const needed = requireThing(
  'container',
  absent.length > 0 ? `${absent.join(', ')} cannot be found` : requireDevices().missing,
)

/** The path of the image; the test is skipped where no Debian mirror can be reached. */
async function image({ skip }: TestContext, out: string): Promise<string> {
  try {
    return await packContainer(out)
  } catch (error) {
    if (
      /Could not resolve|Temporary failure resolving|Cannot initiate the connection|Unable to connect/.test(
        String(error),
      )
    )
      return skip('no network: the Debian mirror cannot be reached')
    throw error
  }
}

testWith(needed)(
  'the image is small, wants a token of its operator, and runs a lab without privileges',
  async (context) => {
    const place = await mkdtemp(join(tmpdir(), 'patchbay-container-'))
    onTestFinished(() => rm(place, { recursive: true, force: true }))
    const file = await image(context, place)
    expect((await stat(file)).size).toBeLessThan(120 << 20)
    const buildah = async (...args: string[]) => (await run('buildah', args)).stdout.trim()
    const container = await buildah('from', '--pull-never', `oci-archive:${file}`)
    onTestFinished(async () => {
      const id = await buildah('inspect', '--format', '{{.FromImageID}}', container)
      await buildah('rm', container)
      await buildah('rmi', id)
    })
    // Its entry point, as no program that starts containers is needed here.
    const inside = ['run', '--isolation', 'chroot']
    const command = [container, '--', '/usr/bin/patchbay', 'serve']
    await expect(run('buildah', [...inside, ...command])).rejects.toMatchObject({
      stderr: expect.stringContaining('is not loopback, and every client of the service can run programs here'),
    })

    const port = freePort()
    const flags = ['--port', String(port), '--host', '127.0.0.1', '--no-local', ...portArguments()]
    const child = spawn('buildah', [...inside, '--env', 'PATCHBAY_TOKEN=secret', ...command, ...flags], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => stop(child, port))
    for await (const line of createInterface({ input: child.stdout })) if (line.includes('is ready on')) break
    const url = `http://127.0.0.1:${port}`
    expect((await fetch(`${url}/v2/projects`)).status).toBe(401)
    const service = callsAt(url, 'secret')
    expect(await service.call('GET', '/v2/compute/capabilities')).toMatchObject({ packet_path: 'fast' })
    const lab = await createLab(service)
    const terminal = await startPcs(service, lab)
    terminal.type('ping 10.0.0.2 -c 1\r')
    await terminal.expect('icmp_seq=1 ttl=64')
  },
  900_000,
)

/** Ends the service as the program that runs a container does: by a signal for its first process. */
async function stop(child: ChildProcess, port: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  for (const pid of (await readdir('/proc')).filter((it) => /^\d+$/.test(it))) {
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
    if (words[1]?.endsWith('/patchbay.js') && words.includes(String(port))) process.kill(Number(pid), 'SIGTERM')
  }
  await gone
}
