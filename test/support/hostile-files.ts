import type { ReadFile } from '../../src/importers/readers.ts'

/** A text of at most 1 MiB that a stranger made to keep a reader busy. */
export interface HostileFile {
  readonly name: string
  readonly reader: keyof typeof readAs
  readonly text: () => string
}

const readAs = {
  'lab file': (read: ReadFile, document: string) => read('labFile', { document }),
  import: (read: ReadFile, text: string) => read('labImport', { text }),
  appliance: (read: ReadFile, text: string) => read('appliance', { text, version: undefined }),
}

/** Reads a hostile file by its reader. */
export const readHostile = (read: ReadFile, { reader, text }: HostileFile): Promise<object> =>
  readAs[reader](read, text())

const MiB = 1 << 20

/** As many repetitions of a piece, which may depend on its number, as fit between `head` and `tail`. */
function filled(head: string, piece: string | ((index: number) => string), tail = '', bytes = MiB): string {
  const parts: string[] = []
  let left = bytes - head.length - tail.length
  for (let index = 0; ; index++) {
    const next = typeof piece === 'string' ? piece : piece(index)
    left -= next.length
    if (left < 0) return `${head}${parts.join('')}${tail}`
    parts.push(next)
  }
}

/** The same with at most as many pieces as a lab may have nodes and links, so that more of the file is read. */
function full(head: string, piece: string | ((index: number) => string), most = 9_990): string {
  return (
    head +
    Array.from({ length: most }, (_, index) => (typeof piece === 'string' ? piece : piece(index)))
      .join('')
      .slice(0, MiB - head.length - 1)
      .replace(/\n[^\n]*$/, '\n')
  )
}

const rows = (count: number, row: (index: number) => string): string =>
  Array.from({ length: count }, (_, it) => row(it)).join('')
const lab = 'lab: x\n'
const oneNode = `${lab}nodes:\n  A: { kind: pc }\n`

const labFiles: Readonly<Record<string, () => string>> = {
  'long names near one another in links that name none of them': () => {
    const names = rows(6, (it) => `  ${'n'.repeat(60_000 + it)}: { kind: pc }\n`)
    return filled(`${lab}nodes:\n${names}links:\n`, (it) => `  - [${'m'.repeat(2)}${it}, A${it}]\n`)
  },
  'thousands of nodes, and links to nodes that are not there': () => {
    const nodes = rows(6_000, (it) => `  ${'node'.repeat(9)}${it}: {kind: pc}\n`)
    return full(`${lab}nodes:\n${nodes}links:\n`, (it) => `  - [nobe${it}, nobe${it}:9]\n`, 3_900)
  },
  'thousands of nodes after nodes that are not there': () => {
    return full(`${lab}nodes:\n`, (it) => `  node${it}: {kind: pc, after: [nobe${it}x, nobe${it}y, nodd${it}]}\n`)
  },
  'thousands of nodes with a console each': () =>
    full(`${lab}nodes:\n`, (it) => `  n${it}: {kind: pc, console: ${1024 + (it % 64_000)}}\n`),
  'four templates with thousands of labels, which nodes add to': () => {
    const chain = rows(
      4,
      (t) => `  t${t}: {${t < 3 ? `is: t${t + 1}` : 'kind: pc'}, labels: {${rows(1_500, (it) => `l${t}${it}: v,`)}}}\n`,
    )
    return full(`${lab}templates:\n${chain}nodes:\n`, (it) => `  n${it}: {is: t0, labels: {a: b}}\n`)
  },
  'a template with the names of 1,024 ports for thousands of nodes': () => {
    const ports = rows(270, (it) => `p${it}, `)
    return full(
      `${lab}templates:\n  t: {kind: machine-emulator, image: x.img, adapters: 275, ports: [${ports}]}\nnodes:\n`,
      (it) => `  n${it}: {is: t}\n`,
    )
  },
  'a template with 500 labels for 9,990 nodes': () => {
    const labels = rows(500, (it) => `l${it}: v, `)
    return full(`${lab}templates:\n  t: {kind: pc, labels: {${labels}}}\nnodes:\n`, (it) => `  n${it}: {is: t}\n`)
  },
  'a template with 20 labels of 1,000 characters for 9,990 nodes': () => {
    const labels = rows(20, (it) => `l${it}: ${'v'.repeat(999)}, `)
    return full(`${lab}templates:\n  t: {kind: pc, labels: {${labels}}}\nnodes:\n`, (it) => `  n${it}: {is: t}\n`)
  },
  'as many nodes and links as a lab may have': () => {
    const nodes = rows(
      5_000,
      (it) => `  n${it}: {kind: iou, image: x, at: [${it}, 2], labels: {a: b}, ready: {console: a, within: 10s}}\n`,
    )
    return full(
      `${lab}nodes:\n${nodes}links:\n`,
      (it) => `  - {ends: [n${it}:e0/0, n${it + 1}:e0/1], name: link${it}, delay: 1ms}\n`,
      4_990,
    )
  },
  'machines with the most adapters, each with links': () => {
    const nodes = rows(5_000, (it) => `  n${it}: {kind: machine-emulator, image: x, adapters: 275}\n`)
    return full(`${lab}nodes:\n${nodes}links:\n`, (it) => `  - [n${it}:274/0, n${it + 1}:273/0]\n`, 4_990)
  },
  '40,000 nodes': () => filled(`${lab}nodes:\n`, (it) => `  ${it}: {kind: pc}\n`),
  'thousands of machines with the most adapters': () =>
    full(`${lab}nodes:\n`, (it) => `  ${it}: {kind: machine-emulator, image: x, adapters: 275}\n`),
  'as many links of a machine as it has ports, over and over': () =>
    full(
      `${lab}nodes:\n  A: {kind: machine-emulator, image: x, adapters: 275}\nlinks:\n`,
      (it) => `  - [A:274, A:${it % 275}]\n`,
    ),
  'a chain of nodes that wait for one another': () =>
    full(`${lab}nodes:\n`, (it) => `  n${it}: {kind: pc, after: [n${it + 1}]}\n`),
  'circles of nodes that wait for one another': () =>
    full(`${lab}nodes:\n`, (it) => `  n${it}: {kind: pc, after: [n${it ^ 1}, n${0}]}\n`),
  'variables by the thousand, and values that name none of them': () => {
    const vars = rows(20_000, (it) => `  variable${it}: 1\n`)
    return filled(`${lab}vars:\n${vars}nodes:\n`, (it) => `  n${it}: {kind: "\${variabel${it}}"}\n`)
  },
  'variables of 4 KB, each used a hundred times in a value': () => {
    const vars = rows(3, (it) => `  v${it}: ${'x'.repeat(4000)}\n`)
    return filled(`${lab}vars:\n${vars}nodes:\n  A:\n    kind: pc\n    labels: {a: "`, `$\{v1}`, '"}\n')
  },
  comments: () => filled(oneNode, '#\n'),
  'commas in a list': () => filled(`${oneNode}x: [`, ','),
  'opening braces with keys': () => filled('', '{a: '),
  'empty lines': () => filled(oneNode, '\n'),
  'anchors and aliases that make a million values': () => {
    const lines = rows(
      9,
      (it) => `a${it}: &a${it} [${it === 0 ? rows(9, () => 'x, ') : rows(9, () => `*a${it - 1}, `)}]\n`,
    )
    return `${lines}${lab}nodes: {}\n`
  },
  'tags on everything': () => filled(`${lab}nodes: [`, '!x a, ', ']\n'),
  'expressions that are hard to judge': () =>
    filled(`${oneNode}checks:\n`, () => `  - {on: A, type: x, expect: '${'[a'.repeat(450)}]'}\n`),
  'checks that name a link that is not there': () => {
    const links = rows(9_000, (it) => `  - {ends: [A:0, B:0], name: link${it}}\n`)
    return filled(`${oneNode}links:\n${links}checks:\n`, (it) => `  - {link: lnik${it}, verdict: ok}\n`)
  },
  'checks of a pc with a startup script of blanks': () =>
    filled(
      `${lab}nodes: {A: {kind: pc, config: {text: "${' '.repeat(60_000)}"}}}\nchecks:\n`,
      '  - {from: A, ping: A}\n',
    ),
  'a JSON document in one line': () =>
    `{"lab":"x","nodes":{${rows(20_000, (it) => `"n${it}":{"kind":"pc","at":[1,${it}]},`)}"z":{"kind":"pc"}}}`,
}

const clabNodes = (count: number, row: (index: number) => string): string =>
  `name: x\ntopology:\n  nodes:\n${rows(count, row)}`
const imports: Readonly<Record<string, () => string>> = {
  'CML: 10,000 nodes of one label': () =>
    full('lab: {title: x}\nnodes:\n', (it) => `- {id: n${it}, label: a, node_definition: iosv, interfaces: []}\n`),
  'CML: nodes of one label of 255 characters': () =>
    full('lab: {title: x}\nnodes:\n', (it) => `- {id: n${it}, label: ${'a'.repeat(255)}, node_definition: iosv}\n`),
  'CML: nodes of one label that ends in a large number': () =>
    full('lab: {title: x}\nnodes:\n', (it) => `- {id: n${it}, label: a99999999${it % 10}, node_definition: iosv}\n`),
  'containerlab: nodes whose kinds are not known': () =>
    full('name: x\ntopology:\n  nodes:\n', (it) => `    n${it}: {kind: nokia_srlinux_${it}x}\n`),
  'containerlab: groups with a thousand labels': () => {
    const labels = rows(1000, (it) => `l${it}: v, `)
    return full(
      `name: x\ntopology:\n  defaults: {kind: linux, labels: {${labels}}}\n  nodes:\n`,
      (it) => `    n${it}: {}\n`,
    )
  },
  'containerlab: nodes of a group with a thousand commands': () => {
    const exec = rows(1000, (it) => `"ip a add 10.0.0.${it}/8 dev eth${it}", `)
    return full(
      `name: x\ntopology:\n  defaults: {kind: linux, exec: [${exec}]}\n  nodes:\n`,
      (it) => `    n${it}: {}\n`,
    )
  },
  'containerlab: containers with thousands of variables and files': () => {
    const env = rows(1000, (it) => `V${it}: "", `)
    const binds = rows(1000, (it) => `a/${it}:/${it}, `)
    return full(
      `name: x\ntopology:\n  defaults: {kind: linux, image: a, env: {${env}}, binds: [${binds}]}\n  nodes:\n`,
      (it) => `    n${it}: {}\n`,
    )
  },
  'containerlab: a command with the names of nodes': () => {
    const exec = '__clabNodeName__'.repeat(30_000)
    return full(
      `name: x\ntopology:\n  defaults: {kind: linux, image: a, exec: [${exec}]}\n  nodes:\n`,
      (it) => `    n${'x'.repeat(230)}${it}: {}\n`,
    )
  },
  'containerlab: containers with one bad bind each': () =>
    full('name: x\ntopology:\n  nodes:\n', (it) => `    n${it}: {kind: linux, image: a${it}, binds: [/${it}:b]}\n`),
  'containerlab: links to nodes that are not there': () =>
    filled(
      `${clabNodes(10_000, (it) => `    n${it}: {kind: linux}\n`)}  links:\n`,
      (it) => `    - endpoints: [m${it}:e1, k${it}:e2]\n`,
    ),
  'containerlab: merge keys': () =>
    full(
      `x: &x {${rows(2000, (it) => `k${it}: 1, `)}}\nname: x\ntopology:\n  nodes:\n`,
      (it) => `    n${it}: {<<: *x, kind: linux}\n`,
    ),
  'containerlab: a chain of variables of a shell': () =>
    filled('name: x\ntopology:\n  nodes:\n', (it) => `    n${it}: {kind: "\${X:=linux}"}\n`),
  'GNS3: nodes of one name': () =>
    filled(
      '{"revision":9,"name":"x","topology":{"nodes":[',
      (it) => `{"node_id":"${it}","node_type":"vpcs","name":"PC","properties":{}},`,
      ']}}',
    ),
  'GNS3: a cloud with thousands of ports, each with a link': () => {
    const ports = rows(6_000, (it) => `{"port_number":${it},"interface":"e","type":"ethernet"},`)
    const links = rows(
      5_000,
      (it) => `{"nodes":[{"node_id":"a","port_number":${it}},{"node_id":"b","adapter_number":${it}}]},`,
    )
    return `{"revision":9,"name":"x","topology":{"nodes":[{"node_id":"a","node_type":"cloud","name":"c","properties":{"ports_mapping":[${ports}]}},{"node_id":"b","node_type":"qemu","name":"q","properties":{}}],"links":[${links}]}}`
  },
  'GNS3: settings that are not known': () =>
    filled(
      '{"revision":9,"name":"x","topology":{"nodes":[{"node_id":"1","node_type":"qemu","name":"q","properties":{',
      (it) => `"x${it}":1,`,
      '}}]}}',
    ),
  'a document of one list': () => filled('topology: [', '[],', ']'),
}

const appliances: Readonly<Record<string, () => string>> = {
  'images of an appliance, each asked for by a version': () => {
    const images = rows(7_000, (it) => `{"filename":"f${it}","md5sum":"0"},`)
    const asked = rows(20_000, (it) => `"i${it}":"g${it}",`)
    return `{"appliance_id":"x","name":"x","registry_version":6,"qemu":{},"images":[${images}],"versions":[{"name":"1","images":{${asked}}}]}`
  },
  'settings of an appliance that are not known': () =>
    filled('{"appliance_id":"x","name":"x","registry_version":6,"versions":[],"qemu":{', (it) => `"x${it}":1,`, '}}'),
}

/** Files that are hard to read, each for one reader. */
export const hostileFiles: readonly HostileFile[] = (
  [
    ['lab file', labFiles],
    ['import', imports],
    ['appliance', appliances],
  ] as const
).flatMap(([reader, files]) => Object.entries(files).map(([name, text]) => ({ name, reader, text })))
