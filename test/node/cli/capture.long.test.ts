import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { open, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { rows } from '../../../runtime/node/cli/capture-rows.ts'
import { pcapForm, pcapngForm, sinkOf } from '../../../runtime/node/cli/capture-sinks.ts'
import { RowOutput } from '../../../runtime/node/cli/row-output.ts'
import { lossRecord, pcapHeader } from '../../../runtime/node/dataplane/capture/pcap-file.ts'
import type { LabLink } from '../../../src/model/lab/link.ts'
import { CaptureReader } from '../../../src/packets/capture-reader.ts'
import { summarize } from '../../../src/packets/decode.ts'
import { packetBlocks, pcapngHead } from '../../../src/packets/pcapng.ts'
import { CommandLine } from '../../support/command-line.ts'
import { freshDirectory } from '../../support/directory.ts'
import { hangMs } from '../../support/limits.ts'
import { samples } from '../../support/packet-samples.ts'
import { pcapOf, readWhole, textsOf } from '../../support/pcap.ts'
import { requireLibpcap, requireProgram } from '../../support/require.ts'
import { bundledProgram, TestService } from '../../support/service.ts'
import { testWith } from '../../support/test-with.ts'
import { alone, tshark } from '../../support/tshark.ts'

const libpcap = requireLibpcap()
const tsharkProgram = requireProgram('tshark')
let service: TestService

beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded' })
  return () => service.close()
})

/** A lab of two pcs on one link, which run, with a console to type on. */
async function lab(name: string) {
  const project = `/v2/projects/${name}`
  await service.call('POST', '/v2/projects', { name })
  for (const last of [1, 2]) {
    const properties = { startup_script: `ip 10.0.0.${last}/24` }
    await service.call('POST', `${project}/nodes`, { name: `PC${last}`, node_type: 'pc', properties })
  }
  const link: LabLink = await service.call('POST', `${project}/links`, { nodes: ['PC1:e0', 'PC2:e0'] })
  await service.call('POST', `${project}/nodes/start`)
  const patchbay = await CommandLine.of({ server: service.url })
  const at = `${project}/links/${link.link_id}`
  /** Sends echoes until told not to. */
  const pings = () => {
    let isOver = false
    const over = (async () => {
      while (!isOver)
        await service.call('POST', `${project}/nodes/PC1/console/expect`, {
          ...{ send: 'ping 10.0.0.2 -c 1\r', expect: 'bytes from|icmp_seq' },
        })
    })()
    const stop = async () => {
      isOver = true
      await over
    }
    onTestFinished(stop)
    return stop
  }
  return { patchbay, at, pings }
}

testWith(libpcap)('frames are lines in the columns of Wireshark; --count and --filter choose them', async () => {
  const { patchbay, pings } = await lab('lines')
  pings()
  const argv = ['capture', 'lines/PC1:e0', '--count', '3', '--filter', 'icmp[0] == 8']
  const { code, out, err } = await patchbay.run(argv)
  expect([code, err]).toEqual([0, 'Capturing PC1:e0 -- PC2:e0; Ctrl-C ends it\n3 frames\n'])
  const lines = out.trimEnd().split('\n')
  expect(lines).toHaveLength(3)
  for (const line of lines)
    expect(line).toMatch(
      /^ +\d+\.\d{6} {2}10\.0\.0\.1 {9}10\.0\.0\.2 {9}ICMP {6}Echo \(ping\) request {2}id=0x[0-9a-f]{4}, seq=\d+\/\d+, ttl=64$/,
    )
  expect(lines[0]).toMatch(/^ +0\.000000 /)
  const json = (await patchbay.run([...argv, '--json'])).out.trimEnd().split('\n')
  const parsed = json.map((line) => JSON.parse(line))
  expect(parsed[0]).toMatchObject({ length: 98, source: '10.0.0.1', destination: '10.0.0.2', protocol: 'ICMP' })
  expect(parsed[3]).toMatchObject({ ok: true, exit: 0, link: 'PC1:e0 -- PC2:e0', frames: 3, skipped: 0 })
})

test('Ctrl-C ends the capture with a whole file, and the capture of another client goes on', async () => {
  const { patchbay, at, pings } = await lab('joined')
  await service.call('POST', `${at}/start_capture`, { capture_file_name: 'theirs.pcap' })
  const child = patchbay.start(['capture', 'joined/PC1--PC2', '-w', 'ours.pcap'])
  const errors = text(child.stderr)
  const file = join(patchbay.home, 'ours.pcap')
  pings()
  await vi.waitFor(async () => expect((await stat(file)).size).toBeGreaterThan(300), { timeout: hangMs })
  child.kill('SIGINT')
  expect(await once(child, 'exit')).toEqual([130, null])
  const { records, linkType } = await readWhole(file)
  expect(linkType).toBe(1)
  expect(await errors).toBe(`Capturing PC1:e0 -- PC2:e0 into ours.pcap; Ctrl-C ends it\n${records.length} frames\n`)
  expect(await service.call('GET', at)).toMatchObject({ capturing: true, capture_file_name: 'theirs.pcap' })
})

testWith(requireProgram('tshark'))('-w - is pcap for a pipe, of which tshark shows the same lines', async () => {
  const { patchbay, pings } = await lab('piped')
  pings()
  const child = patchbay.start(['capture', 'piped/PC1:e0', '-w', '-', '-c', '6'])
  const pieces: Buffer[] = []
  for await (const piece of child.stdout) pieces.push(piece)
  const pcap = Buffer.concat(pieces)
  const file = join(await freshDirectory(), 'piped.pcap')
  const handle = await open(file, 'w')
  await handle.writeFile(pcap)
  await handle.close()
  const columns = ['Source', 'Destination', 'Protocol', 'Info'].map((column) => `_ws.col.${column}`)
  const ours = new CaptureReader().push(pcap).map(summarize)
  expect(ours).toHaveLength(6)
  expect(ours.map((it) => [it.source, it.destination, it.protocol, it.info])).toEqual(
    (await tshark(file, columns, '', alone)).map((row) =>
      row.map((column) => column.replace(/ \((?:reply|request) in \d+\)| \(no response found!\)/, '')),
    ),
  )
})

test('a pipe whose reader has enough ends the capture, and so does the end of the link', async () => {
  const { patchbay, at, pings } = await lab('ends')
  const stop = pings()
  const command = `${process.execPath} ${bundledProgram()} capture ends/PC1:e0 --server ${service.url} | head -n 2`
  const { stdout: out } = await promisify(execFile)('sh', ['-c', command], { timeout: hangMs })
  expect(out.split('\n')).toHaveLength(3)
  await stop()
  const child = patchbay.start(['capture', 'ends/PC1:e0'])
  const over = once(child, 'exit')
  await once(child.stderr, 'data')
  await service.call('DELETE', at)
  expect(await over).toEqual([0, null])
})

test('a file has the frames of a stream with records of losses, without these records', async () => {
  const path = join(await freshDirectory(), 'lossy.pcap')
  const sink = await sinkOf({ write: path, json: false }, { form: pcapForm(1), isWhole: true })
  const reader = new CaptureReader()
  const frames = ['one', 'two', 'three', 'four'].map((it) => pcapOf(1, [Buffer.from(it)]).subarray(24))
  const stream = Buffer.concat([
    pcapHeader(1),
    frames[0],
    lossRecord(7),
    frames[1],
    frames[2],
    lossRecord(5),
    frames[3],
  ] as Buffer[])
  for (const at of [0, 50, 100, 150]) {
    const { lost } = reader
    const read = reader.push(stream.subarray(at, at === 150 ? undefined : at + 50))
    await sink.write({ bytes: reader.whole, frames: read, hasLosses: reader.lost > lost })
  }
  await sink.end()
  expect(textsOf(await readWhole(path))).toEqual(['one', 'two', 'three', 'four'])
  expect(reader.lost).toBe(12)
})

testWith(tsharkProgram)(
  'a lab is captured whole: one file with an interface for each link, in the order of time',
  async () => {
    const { patchbay, pings } = await lab('whole')
    await service.call('POST', '/v2/projects/whole/nodes', { name: 'PC3', node_type: 'pc', properties: {} })
    await service.call('POST', '/v2/projects/whole/nodes', { name: 'PC4', node_type: 'pc', properties: {} })
    await service.call('POST', '/v2/projects/whole/links', { name: 'second', nodes: ['PC3:e0', 'PC4:e0'] })
    await service.call('POST', '/v2/projects/whole/nodes/start')
    const child = patchbay.start(['capture', 'whole', '-w', 'all.pcapng'])
    const [begun] = await once(child.stderr, 'data')
    expect(String(begun)).toBe('Capturing 2 links of whole into all.pcapng; Ctrl-C ends it\n')
    const over = once(child, 'exit')
    pings()
    const type = (line: string) =>
      service.call('POST', '/v2/projects/whole/nodes/PC3/console/expect', { send: `${line}\r`, expect: 'icmp_seq=1' })
    await service.call('POST', '/v2/projects/whole/nodes/PC3/console/expect', {
      send: 'ip 10.1.0.3/24\r',
      expect: 'PC3>',
    })
    await service.call('POST', '/v2/projects/whole/nodes/PC4/console/expect', {
      send: 'ip 10.1.0.4/24\r',
      expect: 'PC4>',
    })
    await type('ping 10.1.0.4 -c 1')
    const file = join(patchbay.home, 'all.pcapng')
    const seen = async () =>
      existsSync(file) ? await tshark(file, ['frame.interface_name', 'frame.time_epoch'], 'icmp').catch(() => []) : []
    await vi.waitFor(async () => expect((await seen()).map(([name]) => name)).toContain('second'), { timeout: hangMs })
    child.kill('SIGINT')
    expect(await over).toEqual([130, null])
    const frames = await seen()
    expect(new Set(frames.map(([name]) => name))).toEqual(new Set(['second', 'PC1:e0 -- PC2:e0']))
    const times = frames.map(([, time]) => Number(time))
    expect(times).toEqual(times.toSorted((x, y) => x - y))

    // As lines, with the link; and of one link that is named with another.
    const some = await patchbay.run(['capture', 'whole/second', 'whole/PC1:e0', '--count', '2', '--json'])
    const [line] = some.out
      .trimEnd()
      .split('\n')
      .map((it) => JSON.parse(it))
    expect(line).toMatchObject({
      link: expect.stringMatching(/^(second|PC1:e0 -- PC2:e0)$/),
      protocol: expect.any(String),
    })
    const shown = await patchbay.run(['capture', 'whole', '--count', '1'])
    expect(shown.out).toMatch(/^ +0\.000000 {2}(second|PC1:e0 -- PC2:e0) {2}/)
  },
)

test('--rotate keeps the last files, each a capture of its own', async () => {
  const directory = await freshDirectory()
  const reader = new CaptureReader()
  const form = pcapngForm(reader, 'links')
  const rotation = { bytes: 450, files: 2 }
  const sink = await sinkOf({ write: join(directory, 'all.pcapng'), json: false }, { form, isWhole: true, rotation })
  const frame = (at: number) => ({
    ...{ seconds: at, nanos: 0, length: 100, linkType: 1, interfaceNumber: 0, bytes: Buffer.alloc(100, at) },
  })
  const pieces = [
    Buffer.concat([pcapngHead([{ name: 'one', linkType: 1 }], 'links'), packetBlocks([frame(1)])]),
    ...[2, 3, 4, 5].map((at) => packetBlocks([frame(at)])),
  ]
  for (const piece of pieces) await sink.write({ frames: reader.push(piece), bytes: reader.whole, hasLosses: false })
  await sink.end()
  const names = (await readdir(directory)).toSorted()
  expect(names).toEqual(['all-00002.pcapng', 'all-00003.pcapng'])
  const seconds: number[] = []
  for (const name of names) {
    const file = new CaptureReader()
    seconds.push(...file.push(await readFile(join(directory, name))).map((it) => it.seconds))
    expect(file.interfaces.map((it) => it.name)).toEqual(['one'])
  }
  expect(seconds).toEqual([3, 4, 5])
})

test('faults are reported before the file is opened', async () => {
  const { patchbay } = await lab('wrong')
  const file = await patchbay.file('kept.pcap', 'kept')
  const wrong = [
    ...(libpcap.skip
      ? []
      : ([
          [
            64,
            ['wrong/PC1:e0', '--filter', 'icmp and foo'],
            '--filter: syntax error in filter expression at character 10',
          ],
        ] as const)),
    [64, ['wrong/PC1:e0', '--count', '0'], '--count: expected a number from 1, got "0"'],
    [64, ['wrong/PC1:e0', '--link-type', 'ppp'], '--link-type is for serial links'],
    [64, ['wrong', '--link-type', 'ppp'], '--link-type is for one link'],
    [64, ['wrong', 'wrong/PC1:e0'], 'expected one lab, or links of one lab'],
    [64, ['wrong', '--rotate', '10MB/2', '-w', '-'], '--rotate needs -w FILE'],
    [64, ['wrong', '-w', 'kept.pcap', '--rotate', '10'], '--rotate: expected SIZE/FILES such as 100MB/10'],
    [64, ['wrong/PC1:e0', '-w', '-', '--json'], '-w - and --json'],
    [1, ['wrong/PC7:e0'], 'the lab wrong has no link "PC7:e0"'],
    [5, ['wrong/PC1:e0', '--server', 'http://127.0.0.1:9'], 'cannot be reached'],
  ] as const
  for (const [code, argv, message] of wrong) {
    const more = (argv as readonly string[]).includes('-w') ? [] : ['-w', file]
    expect(await patchbay.run(['capture', ...argv, ...more])).toMatchObject({
      code,
      err: expect.stringContaining(message),
    })
  }
  expect(await readFile(join(patchbay.home, file), 'utf8')).toBe('kept')
  expect(await patchbay.run(['capture', 'wrong/PC1:e0', '-w', 'none/x.pcap'])).toMatchObject({
    ...{ code: 1, err: expect.stringContaining('none/x.pcap: there is no such file') },
  })
})

test('a slow terminal gets fewer rows, and the number of missing ones', async () => {
  const path = join(await freshDirectory(), 'terminal')
  execFileSync('mkfifo', [path])
  // Opened for both, a FIFO is not waited for.
  const [terminal, reader] = [await open(path, 'r+'), await open(path, 'r')]
  onTestFinished(async () => {
    await Promise.all([terminal.close(), reader.close()])
  })
  const sink = rows(new RowOutput(terminal.fd), { isTerminal: true, json: false })
  const frames = new CaptureReader().push(
    pcapOf(1, new Array(20_000).fill((samples[0] as (typeof samples)[number]).frame)),
  )
  await sink.write({ bytes: new Uint8Array(0), frames, hasLosses: false })
  expect(sink.skipped).toBeGreaterThan(10_000)
  const ended = sink.end()
  let shown = ''
  const piece = Buffer.alloc(1 << 16)
  while (!shown.includes('not shown')) shown += piece.toString('utf8', 0, (await reader.read(piece)).bytesRead)
  await ended
  const lines = shown.trimEnd().split('\n')
  expect(lines.at(-1)).toContain(`... ${sink.skipped} frames not shown: the terminal is slower than the link`)
  expect(lines.length - 1 + sink.skipped).toBe(20_000)
})
