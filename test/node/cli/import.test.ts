import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CommandLine } from '../../support/command-line.ts'
import { TestService } from '../../support/service.ts'

/** `patchbay import` in a directory with these files. Default of `server`: an address at which nothing listens. */
async function commandsWith(files: Readonly<Record<string, string>>, server = 'http://127.0.0.1:1') {
  const commands = await CommandLine.of({ server })
  for (const [name, text] of Object.entries(files)) await commands.file(name, text)
  return {
    run: (argv: readonly string[], more: { input?: string } = {}) => commands.run(['import', ...argv], more),
    read: (name: string) => readFile(join(commands.home, name), 'utf8'),
    home: commands.home,
  }
}

const topology = 'name: two\ntopology:\n  nodes:\n    a: { kind: linux, env: {} }\n    b: { kind: linux }\n'

test('a topology becomes a lab file beside it, and a second time only with --force', async () => {
  const annotations = JSON.stringify({ nodeAnnotations: [{ id: 'b', position: { x: 5, y: 6 } }] })
  const { run, read } = await commandsWith({ 'two.clab.yml': topology, 'two.clab.yml.annotations.json': annotations })
  expect(await run(['two.clab.yml'])).toEqual({
    code: 0,
    out: `two.lab.yaml: 2 nodes, 0 segments, 0 links, from containerlab

Left out
  two.clab.yml:4:23: topology.nodes.a.env: it applies only to containers

"patchbay up two.lab.yaml" creates the lab and starts it
`,
    err: '',
  })
  expect(await read('two.lab.yaml')).toContain('  b: { kind: pc, at: [ 5, 6 ] }\n')
  expect(await run(['two.clab.yml'])).toMatchObject({ code: 3, err: expect.stringContaining('already exists') })
  expect(await run(['two.clab.yml', '--force'])).toMatchObject({ code: 0 })
})

test('the files that binds name are those of a container, and the report says how to get its image', async () => {
  const binds = '[conf/daemons:/etc/frr/daemons, conf/:/opt/conf, run.sh:/run.sh, image.png:/image.png, away:/away]'
  const { run, read, home } = await commandsWith({
    'frr.clab.yml': `name: frr\ntopology: { nodes: { r1: { kind: linux, image: frr, binds: ${binds} } } }\n`,
    'run.sh': 'ls\n',
  })
  await mkdir(join(home, 'conf/more'), { recursive: true })
  await writeFile(join(home, 'conf/daemons'), 'bgpd=yes\n')
  await writeFile(join(home, 'conf/vtysh.conf'), '')
  await writeFile(join(home, 'conf/more/notes.txt'), 'notes\n')
  await writeFile(join(home, 'image.png'), Buffer.from([0x89, 0xff]))
  await symlink('/etc', join(home, 'away'))
  await symlink('..', join(home, 'conf/loop'))
  await chmod(join(home, 'conf/daemons'), 0o755)
  const { code, out } = await run(['frr.clab.yml'])
  expect([code, out]).toEqual([0, expect.stringContaining('"patchbay images pull frr"')])
  for (const name of ['image.png', 'away']) expect(out).toContain(`there is no text file "${name}"`)
  const text = await read('frr.lab.yaml')
  for (const line of [
    '{ path: /etc/frr/daemons, file: ./conf/daemons, mode: "0755" }',
    '{ path: /opt/conf/vtysh.conf, file: ./conf/vtysh.conf }',
    '{ path: /opt/conf/more/notes.txt, file: ./conf/more/notes.txt }',
    '{ path: /run.sh, file: ./run.sh, mode: "0755" }',
  ])
    expect(text).toContain(line)
  expect(text.match(/ path: /g)).toHaveLength(5)
})

test('standard input becomes standard output, and faults have their place', async () => {
  const { run } = await commandsWith({ 'bad.clab.yml': 'name: x\ntopology: 3\n' })
  const { code, out, err } = await run(['-'], { input: topology })
  expect([code, out.split('\n')[0]]).toEqual([0, 'lab: two'])
  expect(err).toContain('-:4:23: topology.nodes.a.env')
  expect(await run(['bad.clab.yml'])).toEqual({
    code: 3,
    out: '',
    err: 'bad.clab.yml:2:1: topology: expected an object, got 3\n',
  })
  expect(await run(['none.yml'])).toMatchObject({ code: 3, err: expect.stringContaining('none.yml cannot be read') })
})

test('a pipe is read once, and a lab file that cannot be written is reported', async () => {
  const patchbay = await CommandLine.of({ server: 'http://127.0.0.1:1' })
  await patchbay.file('two.clab.yml', topology)
  const { code, out } = await patchbay.inShell('bash', 'patchbay import <(cat two.clab.yml) --to -')
  expect([code, out.split('\n')[0]]).toEqual([0, 'lab: two'])
  // Nobody, not even root, may make a file there.
  expect(await patchbay.run(['import', 'two.clab.yml', '--to', '/proc/two.lab.yaml'])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^patchbay: \/proc\/two\.lab\.yaml cannot be written: .*\n$/),
  })
})

test('a missing file of any format is reported', async () => {
  const patchbay = await CommandLine.of()
  for (const name of ['none.gns3project', 'none.clab.yml', 'none.gns3a'])
    expect(await patchbay.run(['import', name])).toMatchObject({
      code: 3,
      err: expect.stringMatching(/none\.[\w.]+ cannot be read: .*no such file/i),
    })
})

test('an appliance becomes a template, and an archive a lab of the service', async () => {
  const { url: server } = await TestService.start({ 'pc.engine': 'embedded' })
  const appliance = {
    name: 'Router',
    category: 'router',
    qemu: { ram: 256 },
    images: [{ filename: 'r.img', md5sum: '0'.repeat(32), version: '1' }],
    versions: [{ name: '1', images: { hda_disk_image: 'r.img' } }],
  }
  const files = { 'r.gns3a': JSON.stringify(appliance), 'x.gns3project': 'no archive', 'w.gns3a': '{ "name": "W" }' }
  const { run } = await commandsWith(files, server)
  const { code, out } = await run(['r.gns3a'])
  expect(code).toBe(0)
  expect(out).toMatch(/^Created the template Router 1\n\nMissing images\nIMAGE .*\nr.img /)
  expect(await run(['x.gns3project'])).toMatchObject({
    code: 3,
    err: expect.stringMatching(/^x\.gns3project: .*zip archive/),
  })
  expect(await run(['w.gns3a'])).toMatchObject({ code: 3, err: expect.stringMatching(/^w\.gns3a:1:1: expected /) })
  const alone = await commandsWith(files)
  expect(await alone.run(['r.gns3a'])).toMatchObject({ code: 5 })
})

test('a topology in another encoding is imported, and the list says so', async () => {
  const patchbay = await CommandLine.of({ server: 'http://127.0.0.1:1' })
  const text = topology.replace('a: {', 'hö: {')
  await writeFile(join(patchbay.home, 'utf16.clab.yml'), Buffer.from(`\ufeff${text}`, 'utf16le'))
  await writeFile(join(patchbay.home, 'latin1.clab.yml'), Buffer.from(text, 'latin1'))
  for (const [name, note] of [
    ['utf16', 'it is in UTF-16'],
    ['latin1', 'it is not in UTF-8'],
  ]) {
    const { code, out } = await patchbay.run(['import', `${name}.clab.yml`])
    expect([code, out]).toEqual([0, expect.stringContaining(`${name}.clab.yml:1:1: ${note}`)])
    expect(await readFile(join(patchbay.home, `${name}.lab.yaml`), 'utf8')).toContain('hö:')
  }
})

test('a configuration that no lab file can name is left out, so that the lab file is valid', async () => {
  const node = (file: string) => `{ kind: cisco_iol, startup-config: ${file} }`
  const { run } = await commandsWith({
    'x.clab.yml': `name: x\ntopology:\n  nodes:\n    a: ${node('a.cfg')}\n    b: ${node('none.cfg')}\n    c: ${node('../c.cfg')}\n`,
    'a.cfg': 'hostname a\n',
  })
  const { code, out } = await run(['x.clab.yml', '--json'])
  expect(code).toBe(0)
  const messages = (JSON.parse(out) as { left_out: { path: string; message: string }[] }).left_out
  expect(messages.map(({ path, message }) => `${path}: ${message}`)).toEqual([
    'topology.nodes.b.startup-config: is not imported: there is no text file "none.cfg" in the directory of the topology',
    'topology.nodes.c.startup-config: is not imported: "../c.cfg" is not in the directory of the topology; copy it there',
  ])
})
