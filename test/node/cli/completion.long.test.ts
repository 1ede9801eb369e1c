import { beforeAll, expect, test } from 'vitest'
import { commands } from '../../../runtime/node/cli/commands.ts'
import { candidatesFor } from '../../../runtime/node/cli/completion.ts'
import { CommandLine } from '../../support/command-line.ts'
import { hangMs } from '../../support/limits.ts'
import { TestService } from '../../support/service.ts'

/** What is offered for the last word, where the service has a lab of two nodes. */
async function offered(line: string): Promise<string[]> {
  const words = line.split(' ')
  const { words: found, files } = await candidatesFor(words, commands, async (what, word, server) => {
    const inLab = (...found: string[]) => (word.includes('/') ? found.map((it) => `wan/${it}`) : ['wan/'])
    const names = {
      ...{ lab: ['wan'], node: inLab('R1', 'R2'), link: ['wan/'], snapshot: inLab('before', 'after') },
      ...{ token: ['ci'], organization: ['north'], compute: ['local'] },
    }
    if (server === 'http://away') return [{ word: 'away', about: '' }]
    return (names[what as keyof typeof names] ?? []).map((it) => ({ word: it, about: '' }))
  })
  return [...found.map(({ word }) => word), ...(files ? [':files'] : [])]
}

test.each([
  ['in', ['inventory', 'inspect']],
  ['service st', ['status', 'start', 'stop']],
  ['inspect w', ['wan']],
  ['inspect wan/', ['wan/R1', 'wan/R2']],
  ['console w', ['wan/']],
  ['start wan/R1 wan/R', ['wan/R1', 'wan/R2']],
  ['exec wan/R1 ', []],
  ['snapshot restore w', ['wan/']],
  ['snapshot restore wan/b', ['wan/before']],
  ['snapshot restore wan b', ['before']],
  ['snapshot restore wan/before ', []],
  ['snapshot restore wan before ', []],
  ['snapshot rm wan/before ', ['wan/']],
  ['snapshot rm wan before ', ['before', 'after']],
  ['up ', [':files']],
  ['down ', ['wan', ':files']],
  ['up --dr', ['--dry-run']],
  ['up --dry-run --dr', []],
  ['up --var a=1 --va', ['--var']],
  ['capture -w ', [':files']],
  ['capture -w out.pcap w', ['wan']],
  ['capture --link-type ', ['hdlc', 'ppp']],
  ['capture --link-type=p', ['--link-type=ppp']],
  ['inspect --server http://away a', ['away']],
  ['inspect --json -- w', ['wan']],
  ['tokens rm c', ['ci']],
  ['tokens create pi --join --compute ', ['local']],
  ['organizations set n', ['north']],
  ['help conf', ['config']],
  ['serve --conso', expect.arrayContaining(['--console-host'])],
  ['nonsense ', []],
  ['nonsense x ', []],
])('after "patchbay %s" a shell offers %j', async (line, words) => {
  expect(await offered(line)).toEqual(words)
})

test('the first word is any command that is listed', async () => {
  const words = await offered('')
  expect(words).toEqual(expect.arrayContaining(['up', 'service', 'completion', '--help']))
  expect(words).not.toContain('complete')
  expect(new Set(words).size).toBe(words.length)
})

let service: TestService

beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded' })
  return () => service.close()
})

/** What bash offers at the end of each line; one shell takes all of them. */
async function byBash(patchbay: CommandLine, lines: readonly string[]): Promise<string[][]> {
  const tabs = lines.map(
    (line) => `COMP_LINE='${line}' COMP_POINT=${line.length}
     _patchbay
     printf '%s\\n' "\${COMPREPLY[@]}" ---`,
  )
  const { code, out, err } = await patchbay.inShell(
    'bash',
    `export PATCHBAY_COMPLETION_WAIT=${hangMs}ms
     source <(patchbay completion bash)
     COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
     ${tabs.join('\n')}`,
  )
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return out
    .split('---\n')
    .slice(0, -1)
    .map((offers) => offers.trimEnd().split('\n'))
}

test('bash completes names of the service, files and flags', async () => {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file(
    'named.lab.yaml',
    `lab: named
nodes: { R1: { kind: pc }, R2: { kind: pc }, "R 3": { kind: pc }, R4: { kind: pc } }
links: [{ name: core, ends: [R1, R2] }, [R 3, R4]]`,
  )
  await patchbay.run(['apply'])
  const offers = {
    'patchbay insp': ['inspect'],
    'patchbay console na': ['named/'],
    'patchbay console named/R': expect.arrayContaining(['named/R1', 'named/R2', String.raw`named/R\ 3`, 'named/R4']),
    'patchbay link named/': ['named/core', String.raw`named/R\ 3:e0`, 'named/R4:e0'],
    // Bash replaces what follows the colon alone.
    'patchbay link named/R4:': ['e0'],
    'patchbay up nam': ['named.lab.yaml'],
    'patchbay up --dry': ['--dry-run'],
  }
  expect(await byBash(patchbay, Object.keys(offers))).toEqual(Object.values(offers))
})

test('without a service, or with one that does not answer, there are no names and no errors', async () => {
  const alone = await CommandLine.of()
  expect(await byBash(alone, ['patchbay inspect '])).toEqual([['']])
  const away = await CommandLine.of({ server: 'http://127.0.0.1:9' })
  expect(await byBash(away, ['patchbay inspect ', 'patchbay down na'])).toEqual([[''], ['']])
})

test.each(['bash', 'zsh', 'fish'])('the script for %s exists', async (shell) => {
  const patchbay = await CommandLine.of()
  const { code, out } = await patchbay.run(['completion', shell])
  expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('complete -- ') })
  // Where the shell is there, it checks its script.
  const checked = await patchbay.inShell(
    'bash',
    `command -v ${shell} > /dev/null || exit 0; patchbay completion ${shell} | ${shell} -n`,
  )
  expect(checked).toMatchObject({ code: 0, err: '' })
})
