import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { TestService } from '../../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded' })
  return () => service.close()
})

/** A lab of a file with comments and a template. */
const file = (lab: string): string => `# The LAN of the course
lab: ${lab}
templates:
  pc: { kind: pc, labels: { room: a } }
nodes:
  PC1: { is: pc, at: [0, 0],   config: { text: "ip 10.0.1.1/24" } }   # the teacher's
  PC2: { is: pc, at: [200, 0], config: ./pc2.cfg }
  PC3:
    kind: pc
    at: [100, 200] # below
segments:
  lan1: { kind: switch, at: [100, 100], members: [PC1, PC2] }
links:
  - [lan1:7, PC3]
`

async function labOf(name: string) {
  const patchbay = await CommandLine.of({ server: service.url })
  await patchbay.file('lan.lab.yaml', file(name))
  await patchbay.file('pc2.cfg', 'ip 10.0.1.2/24')
  expect(await patchbay.run(['apply'])).toMatchObject({ code: 0, err: expect.any(String) })
  const base = `/v2/projects/${name}`
  return {
    patchbay,
    read: (path = 'lan.lab.yaml') => readFile(join(patchbay.home, path), 'utf8'),
    change: (path: string, body: object, method = 'PUT') => service.call(method, `${base}${path}`, body),
  }
}

test('changes in a lab are saved at their place in the file, and diff is empty then', async () => {
  const { patchbay, read, change } = await labOf('saved')
  await patchbay.run(['link', 'saved/PC3--lan1', '--delay', '20ms', '--loss', '1%', '--there'])
  await change('/nodes/PC1', { x: 40, y: -20 })
  await change('/nodes/PC2', { labels: { room: 'b', seat: '2' } })
  await change('/nodes/PC3', { x: 120, y: 200 })
  await chmod(join(patchbay.home, 'lan.lab.yaml'), 0o640)

  const check = await patchbay.run(['save', '--check'])
  expect(check).toMatchObject({ code: 2, err: '' })
  expect(check.out.split('\n')).toEqual([
    'lan.lab.yaml: 4 changes to save',
    '  ~ node PC1: at',
    '  ~ node PC2: labels',
    '  ~ node PC3: at',
    '  ~ link lan1:7 -- PC3: there',
    '',
  ])
  expect(await read()).toBe(file('saved'))

  expect(await patchbay.json(['save', 'saved'])).toMatchObject({ exit: 0, saved: true, file: 'lan.lab.yaml', left: [] })
  expect(await read()).toBe(
    file('saved')
      .replace('at: [0, 0],   config', 'at: [40, -20],   config')
      .replace('config: ./pc2.cfg }', 'config: ./pc2.cfg, labels: { room: b, seat: "2" } }')
      .replace('[100, 200] # below', '[120, 200] # below')
      .replace('- [lan1:7, PC3]', '- { ends: [lan1:7, PC3], there: { loss: 1%, delay: 20ms } }'),
  )
  expect((await stat(join(patchbay.home, 'lan.lab.yaml'))).mode & 0o777).toBe(0o640)
  expect(await patchbay.run(['diff', '--exit-code'])).toMatchObject({ code: 0 })
  expect((await patchbay.run(['save'])).out).toBe('lan.lab.yaml matches saved; nothing to save\n')

  // Back again: the link needs no keys any more.
  await patchbay.run(['link', 'saved/PC3--lan1', '--clear'])
  await patchbay.run(['save'])
  expect(await read()).toContain('- { ends: [lan1:7, PC3] }\n')
})

test('configurations are saved with --configs: in the file, in the file that it names, or as configs/NODE.cfg', async () => {
  const { patchbay, read } = await labOf('configured')
  await patchbay.run(['start', 'configured'])
  for (const [pc, address] of [
    ['PC1', '10.0.1.11'],
    ['PC2', '10.0.1.12'],
    ['PC3', '10.0.1.13'],
  ])
    for (const line of [`ip ${address}/24`, 'save'])
      await patchbay.run(['exec', `configured/${pc}`, line, '--expect', '(?:PC\\d :|done)'])
  const without = await patchbay.run(['save'])
  expect(without).toMatchObject({ code: 4, out: expect.stringMatching(/PC1: its config .*\(--configs\)\n/) })
  expect(await read()).toBe(file('configured'))

  const saved = await patchbay.run(['save', '--configs'])
  expect(saved).toMatchObject({ code: 0, out: expect.stringContaining('  ~ file ./configs/PC3.cfg\n') })
  expect(await read()).toMatch(/PC1: .*10\.0\.1\.11/)
  expect(await read()).toContain('config: ./pc2.cfg }')
  expect(await read('pc2.cfg')).toContain('10.0.1.12')
  expect(await read()).toContain('    at: [100, 200] # below\n    config: ./configs/PC3.cfg\n')
  expect(await read('configs/PC3.cfg')).toContain('10.0.1.13')
  expect(await patchbay.run(['diff', '--exit-code'])).toMatchObject({ code: 0 })
})

test('objects that the file lacks are listed, and added with --all', async () => {
  const { patchbay, read, change } = await labOf('grown')
  await change('/nodes', { name: 'PC9', node_type: 'pc', x: 300, y: 300 }, 'POST')
  await change('/nodes', { name: 'hub1', node_type: 'hub', x: 400, y: 300 }, 'POST')
  await change('/links', { nodes: ['PC9:Ethernet0', 'hub1:Ethernet0'] }, 'POST')
  expect(await patchbay.run(['save'])).toMatchObject({ code: 4, out: expect.stringContaining('  node PC9 (--all)\n') })
  expect(await patchbay.run(['save', '--all'])).toMatchObject({ code: 0 })
  expect(await read()).toContain('  PC9: { kind: pc, at: [300, 300] }\n')
  expect(await read()).toContain('  hub1: { kind: hub, at: [400, 300], members: [PC9] }\n')
  expect(await patchbay.run(['diff', '--exit-code'])).toMatchObject({ code: 0 })
})

test('a renamed node is saved with all references to it, and diff is empty then', async () => {
  const { patchbay, read, change } = await labOf('renamed')
  await change('/nodes/PC1', { name: 'Teacher', x: 7, y: 8 })
  await change('/nodes/lan1', { name: 'room' })
  const saved = await patchbay.run(['save'])
  expect(saved).toMatchObject({ code: 0, out: expect.stringContaining('  ~ node Teacher (was PC1): at\n') })
  const expected = (name: string, place: string) =>
    file('renamed')
      .replace(/ {2}PC1: (.*) }/, `  ${name}: $1, was: PC1 }`)
      .replace('[0, 0]', place)
      .replace(/ {2}lan1: (.*), members: \[PC1, PC2\]/, `  room: $1, members: [${name}, PC2], was: lan1`)
      .replace('lan1:7', 'room:7')
  expect(await read()).toBe(expected('Teacher', '[7, 8]'))
  expect(await patchbay.run(['diff', '--exit-code'])).toMatchObject({ code: 0 })

  await change('/nodes/Teacher', { name: 'Boss' })
  expect(await patchbay.run(['diff'])).toMatchObject({ out: expect.stringContaining('its name was Boss') })
  expect(await patchbay.run(['save'])).toMatchObject({ code: 0 })
  expect(await read()).toBe(expected('Boss', '[7, 8]'))
  expect(await patchbay.run(['diff', '--exit-code'])).toMatchObject({ code: 0 })
})

test('a name that a lab file cannot have is reported, and the rest is saved', async () => {
  const { patchbay, read, change } = await labOf('unsayable')
  await change('/nodes/PC1', { name: 'PC/1', x: 7, y: 8 })
  const saved = await patchbay.run(['save', '--all'])
  expect(saved).toMatchObject({ code: 4, out: expect.stringContaining('its name was PC/1') })
  expect(await read()).toBe(file('unsayable').replace('[0, 0]', '[7, 8]'))
})

test('a node that was replaced by a segment is saved as a segment with --all, and the reverse', async () => {
  const { patchbay, read, change } = await labOf('turned')
  const turn = async (node_type: string, port: string) => {
    await service.call('DELETE', '/v2/projects/turned/nodes/PC3')
    await change('/nodes', { name: 'PC3', node_type, x: 100, y: 200 }, 'POST')
    await change('/links', { nodes: ['lan1:Ethernet7', `PC3:${port}`] }, 'POST')
    const saved = await patchbay.run(['save', '--all', '--configs'])
    expect(saved).toMatchObject({ code: 0, err: '' })
    expect(await patchbay.run(['diff', '--exit-code'])).toMatchObject({ code: 0 })
    return read()
  }
  const hub = await turn('hub', 'Ethernet2')
  expect(hub).toContain('  PC3: { kind: hub, at: [100, 200]')
  expect(hub).toContain("# the teacher's")
  const pc = await turn('pc', 'Ethernet0')
  expect(pc).toContain('  PC3: { kind: pc, at: [100, 200] }')
})

test('objects that the lab lacks are reported, and stay in the file', async () => {
  const { patchbay, read, change } = await labOf('shrunk')
  await service.call('DELETE', '/v2/projects/shrunk/nodes/PC3')
  await change('/nodes/PC1', { x: 5, y: 5 })
  const saved = await patchbay.run(['save'])
  expect(saved).toMatchObject({
    code: 4,
    out: expect.stringMatching(/Not saved:\n {2}\+ node PC3: it is not in the lab; /),
  })
  expect(saved.out).toContain('(--all)')
  expect(await read()).toContain('at: [5, 5]')
  expect(await read()).toContain('PC3:\n')
})

test('objects that the lab lacks are removed from the file with --all, and diff is empty then', async () => {
  const { patchbay, read, change } = await labOf('lost')
  await service.call('DELETE', '/v2/projects/lost/nodes/PC3')
  await service.call('DELETE', '/v2/projects/lost/nodes/PC2')
  // One that comes back by hand is another node, with other settings.
  await change('/nodes', { name: 'PC2', node_type: 'pc', x: 1, y: 2, console: 5999 }, 'POST')
  await change('/nodes', { name: 'PC4', node_type: 'pc', x: 3, y: 4 }, 'POST')
  await change('/links', { nodes: ['PC4:Ethernet0', 'PC2:Ethernet0'] }, 'POST')
  const saved = await patchbay.run(['save', '--configs', '--all'])
  expect(saved).toMatchObject({ code: 0, err: '', out: expect.not.stringContaining('Not saved') })
  expect(saved.out).toContain('  - node PC3\n')
  expect(saved.out).toContain('  - link lan1 -- PC2\n')
  const text = await read()
  expect(text).not.toContain('PC3')
  expect(text).toContain("# the teacher's")
  expect(text).toContain('members: [PC1]')
  // The template gives labels, which this node has not.
  expect(text).toContain('  PC2: { at: [1, 2], kind: pc')
  expect(await patchbay.run(['diff', '--exit-code'])).toMatchObject({ code: 0 })
  expect((await patchbay.run(['save', '--all', '--configs'])).out).toContain('nothing to save')
})

test('a file that cannot be saved is an error, and nothing is written', async () => {
  const { patchbay, read, change } = await labOf('refused')
  await change('/nodes/PC1', { x: 1, y: 1 })
  const wrong = [
    [['save', '-'], 64, 'standard input cannot be saved'],
    [['save', 'other'], 64, '"patchbay export other FILE" writes one'],
    [['save', 'missing.lab.yaml'], 3, 'missing.lab.yaml'],
    [['save', 'not/there'], 3, 'not/there'],
    [['save', '--name', 'nowhere'], 1, 'there is no lab "nowhere"'],
  ] as const
  for (const [argv, code, message] of wrong)
    expect(await patchbay.run(argv)).toMatchObject({ code, err: expect.stringContaining(message) })
  await writeFile(join(patchbay.home, 'lan.lab.yaml'), 'lab: refused\nnodes: { PC1: { kind: pcc } }\n')
  expect(await patchbay.run(['save'])).toMatchObject({ code: 3, err: expect.stringContaining('pcc') })
  expect(await read()).toBe('lab: refused\nnodes: { PC1: { kind: pcc } }\n')
})
