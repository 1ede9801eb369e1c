import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { findProgram } from '../../../runtime/node/find-program.ts'
import { type ChildSpec, type DynamipsChild, freePort, startChild } from '../../../runtime/node/kinds/dynamips/child.ts'
import { Dynamips, type DynamipsOptions, removeLeftovers } from '../../../runtime/node/kinds/dynamips/dynamips.ts'
import { Hypervisor } from '../../../runtime/node/kinds/dynamips/hypervisor.ts'
import { watchLoad } from '../../../runtime/node/kinds/dynamips/load.ts'
import { words } from '../../stand-in/mips/elf.ts'
import { busy, elsewhere, idling, ring } from '../../stand-in/mips/programs.ts'
import { freshDirectory } from '../../support/directory.ts'
import { requireProgram } from '../../support/require.ts'

const { skip } = requireProgram('dynamips')
/** Our programs are at once where they stay; the 10 s in which dynamips looks at them are its own. */
const bounds = { bootMs: 300, sampleMs: 1000 }

interface Bench {
  readonly dynamips: Dynamips
  readonly children: DynamipsChild[]
  /** What to ask of a program. */
  question(content: Uint8Array): Promise<{ platform: string; image: string; imageName: string; ram: number }>
  /** Fails when something was left. */
  requireClean(): Promise<void>
}

async function bench(directory: string, options: DynamipsOptions = {}): Promise<Bench> {
  const children: DynamipsChild[] = []
  const start = async (spec: ChildSpec) => {
    const child = await startNicely(spec)
    children.push(child)
    return child
  }
  const work = join(directory, 'work')
  await mkdir(work, { recursive: true })
  return {
    dynamips: new Dynamips({ directory: () => work, start, bounds, ...options }),
    children,
    async question(content) {
      const image = join(directory, 'an "idle" one\'s #1.bin')
      await writeFile(image, content)
      return { platform: 'c7200', image, imageName: 'one.bin', ram: 64 }
    },
    async requireClean() {
      expect(await readdir(work)).toEqual([])
      for (const { pid } of children) expect(existsSync(`/proc/${pid}`)).toBe(false)
    },
  }
}

/** Guests that use all they get are behind the other tests. */
const startNicely = (spec: ChildSpec) =>
  startChild({ ...spec, command: findProgram('nice') ?? '', args: ['-n', '10', spec.command, ...spec.args] })

/** A program that pretends to be dynamips. */
async function pretender(script: string): Promise<string> {
  const file = join(await freshDirectory(), 'dynamips')
  await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return file
}

describe.skipIf(skip)('what dynamips finds', () => {
  let directory = ''
  let of: Record<'idling' | 'busy' | 'proposed', Bench>
  let answers: Record<keyof typeof of, Promise<unknown>>
  // Each takes the 10 s, so they are asked at the same time.
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'patchbay-'))
    of = {
      idling: await bench(join(directory, 'idling')),
      busy: await bench(join(directory, 'busy')),
      proposed: await bench(join(directory, 'proposed')),
    }
    answers = {
      idling: of.idling.dynamips.computeIdlePc(await of.idling.question(idling)),
      busy: of.busy.dynamips.computeIdlePc(await of.busy.question(busy)).catch((error: unknown) => error),
      proposed: of.proposed.dynamips.proposals(await of.proposed.question(idling)),
    }
    for (const answer of Object.values(answers)) answer.catch(() => {})
  })
  afterAll(async () => {
    await Promise.all(Object.values(of).map(({ dynamips }) => dynamips.close()))
    await rm(directory, { recursive: true, force: true })
  })

  test('a program that idles in a ring has a value in the ring', { timeout: 60_000 }, async () => {
    expect(ring.map(hex)).toContain(await answers.idling)
    await of.idling.requireClean()
  })

  test('a program that never idles has none, and is told with what was tried', { timeout: 60_000 }, async () => {
    expect(await answers.busy).toMatchObject({
      status: 409,
      message: expect.stringMatching(
        /^No idle-PC value was found for this image: .* 0x600080[0-9a-f]{2} \(\d{2,3} %\)$/,
      ),
    })
    await of.busy.requireClean()
  })

  test('proposals say how often it was found there', { timeout: 60_000 }, async () => {
    const proposals = (await answers.proposed) as string[]
    expect(proposals.length).toBeGreaterThan(0)
    for (const it of proposals) expect(it).toMatch(/^0x600080[0-9a-f]{2} \[\d+\]$|^0x600081[0-9a-f]{2} \[\d+\]$/)
    await of.proposed.requireClean()
  })
})

const hex = (value: number) => `0x${value.toString(16)}`

describe.skipIf(skip)('a dynamips that was started', () => {
  async function running(): Promise<{ client: Hypervisor; child: DynamipsChild; cwd: string }> {
    const cwd = await freshDirectory()
    const port = await freePort()
    const args = ['-N1', '-l', 'dynamips.log', '-H', `127.0.0.1:${port}`]
    const child = await startNicely({ command: findProgram('dynamips') ?? '', args, cwd, log: join(cwd, 'output.txt') })
    onTestFinished(async () => void (await child.stop(1000)))
    return { client: await Hypervisor.connect({ port, ms: 5000 }), child, cwd }
  }
  const bound = { ms: 5000 }

  test('takes values as they were given, and a long one too', async () => {
    const { client } = await running()
    const values = ['a b', "it's", '#1', '! 2', '\\', 'é', 'x'.repeat(2000)]
    const { lines } = await client.run('hypervisor parser_test', [...values, 12], bound)
    const lengthOf = (value: string) => Buffer.byteLength(value)
    expect(lines).toEqual([...values, '12'].map((it, index) => `arg ${index} (len ${lengthOf(it)}): "${it}"`))
  })

  test('refuses with its number', async () => {
    const { client } = await running()
    const refusal = (command: string, ...values: string[]) => client.run(command, values, bound).catch((error) => error)
    expect(await refusal('vm start', 'nobody')).toMatchObject({
      reply: 208,
      message: "vm start: unable to find object 'nobody'",
    })
    expect(await refusal('vm foo', 'nobody')).toMatchObject({ reply: 202 })
    expect(await refusal('bar foo')).toMatchObject({ reply: 201 })
    expect(await refusal('vm start')).toMatchObject({ reply: 203 })
  })

  test('closes the connection when it ends', async () => {
    const { client, child } = await running()
    await child.stop(1000)
    await client.closed
    await expect(client.run('hypervisor version', [], bound)).rejects.toMatchObject({ code: 'closed' })
  })

  test('takes all of a processor until it has the idle PC, and then hardly any', async () => {
    const { client, child, cwd } = await running()
    await writeFile(join(cwd, 'image.bin'), idling)
    await client.run('vm create', ['router', 1, 'c7200'], bound)
    await client.run('vm set_ram', ['router', 64], bound)
    await client.run('vm set_ram_mmap', ['router', 0], bound)
    await client.run('vm set_ios', ['router', 'image.bin'], bound)
    await client.run('vm start', ['router'], bound)
    const load = async () => {
      const watch = watchLoad(child.pid)
      await delay(400)
      return watch?.()
    }
    // Its processor looks every 200 ms whether it is to begin.
    await delay(300)
    expect(await load()).toBeGreaterThan(90)
    await client.run('vm set_idle_pc_online', ['router', 0, hex(ring[3] ?? 0)], bound)
    expect(await load()).toBeLessThan(50)
  })
})

describe.skipIf(skip)('a question', () => {
  let made: Bench
  beforeEach(() => {
    made = undefined as unknown as Bench
  })

  async function ask(content: Uint8Array, options: DynamipsOptions = {}, signal?: AbortSignal) {
    made = await bench(await freshDirectory(), options)
    return made.dynamips.computeIdlePc(await made.question(content), signal)
  }

  test('about an image that cannot be loaded is a conflict with the last words of dynamips', async () => {
    const error = await ask(elsewhere).catch((it: unknown) => it)
    expect(error).toMatchObject({
      status: 409,
      message: expect.stringMatching(/^vm start: unable to start VM instance 'router': .*invalid load address/s),
    })
    expect(String(error)).not.toContain(tmpdir())
    await made.requireClean()
  })

  test.each([
    ['boot', 20_000, 300],
    ['measurement', 50, 600],
  ])('that nobody waits for any more during the %s ends dynamips at once', async (_, bootMs, after) => {
    const gone = new AbortController()
    const answer = ask(idling, { bounds: { ...bounds, bootMs } }, gone.signal)
    answer.catch(() => {})
    await expect.poll(() => made?.children.length).toBe(1)
    await delay(after)
    const since = performance.now()
    gone.abort(new Error('went away'))
    await expect(answer).rejects.toThrow('went away')
    expect(performance.now() - since).toBeLessThan(2000)
    await made.requireClean()
  })

  test.each([
    ['boot', 20_000],
    ['measurement', 50],
  ])('that takes too long is given up during the %s', async (_, bootMs) => {
    const since = performance.now()
    await expect(ask(idling, { bounds: { ...bounds, bootMs, totalMs: 300 } })).rejects.toMatchObject({
      status: 408,
      message: 'The idle-PC value was not found within 0.3 s',
    })
    expect(performance.now() - since).toBeLessThan(3000)
    await made.requireClean()
  })

  test('while another one is answered is a conflict, and closing ends that one', async () => {
    const first = ask(idling, { bounds: { ...bounds, bootMs: 20_000 } })
    first.catch(() => {})
    await expect.poll(() => made?.children.length).toBe(1)
    await expect(made.dynamips.proposals(await made.question(idling))).rejects.toMatchObject({ status: 409 })
    await made.dynamips.close()
    await expect(first).rejects.toMatchObject({ status: 409, message: 'The service is stopping' })
    await made.requireClean()
  })

  test.skipIf(process.getuid?.() !== 0 || findProgram('setpriv') === undefined)(
    'is answered where the program may not have its capabilities',
    async () => {
      const start = (spec: ChildSpec) => {
        const args = ['--bounding-set', '-net_admin,-net_raw', '--', spec.command, ...spec.args]
        return startChild({ ...spec, command: findProgram('setpriv') ?? '', args })
      }
      await expect(ask(elsewhere, { start })).rejects.toMatchObject({ message: expect.stringContaining('vm start') })
      await made.requireClean()
    },
  )

  test('finds another port when somebody has the first', async () => {
    const server = createServer((socket) => socket.destroy()).listen({ port: 0, host: '127.0.0.1' })
    onTestFinished(() => void server.close())
    await expect.poll(() => server.listening).toBe(true)
    const taken = (server.address() as AddressInfo).port
    const ports = [taken, await freePort()]
    const port = async () => ports.shift() ?? 0
    await expect(ask(elsewhere, { port })).rejects.toMatchObject({ message: expect.stringContaining('vm start') })
    expect(made.children).toHaveLength(2)
    await made.requireClean()
  })
})

test('what a service that was killed left is removed, and nothing else', async () => {
  const directory = await freshDirectory()
  await mkdir(join(directory, 'patchbay-dynamips-abc123', 'deeper'), { recursive: true })
  await writeFile(join(directory, 'keeper.log'), '')
  await removeLeftovers(directory)
  expect(await readdir(directory)).toEqual(['keeper.log'])
  await removeLeftovers(join(directory, 'none'))
})

describe('without dynamips', () => {
  test('a program that is not there is a conflict that says how it is installed', async () => {
    const { dynamips, question, requireClean } = await bench(await freshDirectory(), {
      program: () => 'no-such-dynamips',
    })
    await expect(dynamips.computeIdlePc(await question(idling))).rejects.toMatchObject({
      status: 409,
      message: 'no-such-dynamips was not found; sudo apt-get install dynamips (Debian: component non-free)',
    })
    await requireClean()
  })

  test('a program that ends is a conflict with its last words', async () => {
    const program = await pretender('echo "no room left" >&2; exit 1')
    const { dynamips, question, children, requireClean } = await bench(await freshDirectory(), {
      program: () => program,
    })
    await expect(dynamips.computeIdlePc(await question(idling))).rejects.toMatchObject({
      status: 409,
      message: expect.stringMatching(/there: no room left$/),
    })
    expect(children).toHaveLength(3)
    await requireClean()
  })

  test('a program that does not go by itself is killed', async () => {
    const program = await pretender("trap '' TERM; while :; do sleep 0.1; done")
    const made = await bench(await freshDirectory(), {
      program: () => program,
      bounds: { ...bounds, readyMs: 300, graceMs: 200 },
    })
    await expect(made.dynamips.computeIdlePc(await made.question(idling))).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining('cannot be reached'),
    })
    await made.requireClean()
  })

  test('a platform, a memory and an image that cannot be are refused before anything is made', async () => {
    const { dynamips, question, children, requireClean } = await bench(await freshDirectory(), {
      program: () => process.execPath,
    })
    const good = await question(idling)
    await expect(dynamips.computeIdlePc({ ...good, platform: 'c9000' })).rejects.toMatchObject({
      status: 400,
      message: 'platform: expected one of c1700, c2600, c2691, c3600, c3725, c3745, c7200',
    })
    for (const ram of [0, -1, 1.5, 5000]) {
      await expect(dynamips.computeIdlePc({ ...good, ram })).rejects.toMatchObject({ status: 400 })
    }
    const text = await question(words([0x12345678]))
    await expect(dynamips.proposals(text)).rejects.toMatchObject({ status: 409 })
    await expect(dynamips.proposals({ ...good, image: '/nowhere/a.bin' })).rejects.toMatchObject({
      status: 409,
      extra: { image: 'one.bin' },
    })
    expect(children).toEqual([])
    await requireClean()
  })

  test('a place where nothing can be made is a conflict', async () => {
    const options = { program: () => process.execPath, directory: () => '/nowhere' }
    const { dynamips, question, children } = await bench(await freshDirectory(), options)
    await expect(dynamips.proposals(await question(idling))).rejects.toMatchObject({ status: 409 })
    expect(children).toEqual([])
  })
})
