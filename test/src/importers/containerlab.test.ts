import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type FilesAt, filesNamed } from '../../../src/importers/files-beside.ts'
import { importLabFile } from '../../../src/importers/formats.ts'
import { importedFixture } from './imported-fixture.ts'

test.each([
  {
    file: '01-two-hosts.clab.yml',
    nodes: 'h1 container, h2 container',
    links: 'h1:eth1 -- h2:eth1',
    images: 'alpine_3.tar',
    leftOut: 'topology.kinds.linux.image',
  },
  {
    file: '02-srlinux-and-ceos.clab.yml',
    cannotRun: 'srl, ceos',
    nodes: 'srl machine, ceos machine',
    links: 'srl:e1-1 -- ceos:eth1',
    images: '',
    leftOut: 'topology.nodes.srl.type',
  },
  {
    file: '03-frr-triangle.clab.yml',
    nodes: 'r1 container, r2 container, r3 container',
    links: 'r1:eth1 -- r2:eth1; r2:eth2 -- r3:eth1; r3:eth2 -- r1:eth2',
    images: 'quay.io_frrouting_frr_10.1.1.tar',
    leftOut: 'topology.nodes.r1.image, topology.nodes.r2.image, topology.nodes.r3.image',
  },
  {
    file: '04-clos.clab.yml',
    nodes: 'spine1 machine, spine2 machine, leaf1 machine, leaf2 machine',
    links: 'leaf1:eth1 -- spine1:eth1; leaf1:eth2 -- spine2:eth1; leaf2:eth1 -- spine1:eth2; leaf2:eth2 -- spine2:eth2',
    images: 'arista_veos-4.32.qcow2',
    leftOut: 'topology.kinds.arista_veos.image, topology.groups.leaf.startup-config',
  },
  {
    file: '05-bridge.clab.yml',
    nodes: 'h1 container, h2 container, h3 container',
    links: 'br0 switch: h1:eth1, h2:eth1, h3:eth1',
    images: 'alpine_latest.tar',
    leftOut: 'topology.nodes.br0.kind, topology.nodes.h1.image, topology.nodes.h2.image, topology.nodes.h3.image',
  },
  {
    file: '06-host-and-management.clab.yml',
    nodes: 'r1 machine',
    links: 'clab-r1 cloud: r1:eth1; mgmt nat: r1:eth2; enp0s3 cloud: r1:eth3',
    images: 'vyosnetworks_vyos-1.5.qcow2',
    leftOut:
      'topology.nodes.r1.image, topology.links[0].endpoints[1], topology.links[1].endpoints[1], topology.links[2].endpoints[1]',
  },
  {
    file: '07-extended-links.clab.yml',
    nodes: 'a container, b container, c container',
    links: 'a:eth1 -- b:eth1',
    images: 'alpine_latest.tar',
    leftOut:
      'topology.nodes.a.image, topology.nodes.b.image, topology.nodes.c.image, topology.links[0].mtu, topology.links[0].endpoints[0].mac, topology.links[1]',
  },
  {
    file: '08-positions.clab.yml',
    nodes: 'left container, right container',
    links: 'left:eth1 -- right:eth1',
    images: 'alpine_latest.tar',
    leftOut: 'topology.nodes.left.image, topology.nodes.left.labels.graph-icon, topology.nodes.right.image',
  },
  {
    file: '09-order.clab.yml',
    nodes: 'db container, app container, web container',
    links: '',
    images: 'alpine_latest.tar',
    leftOut:
      'topology.nodes.db.image, topology.nodes.db.startup-delay, topology.nodes.app.image, topology.nodes.web.image',
  },
  {
    file: '10-vmx-ports.clab.yml',
    nodes: 'r1 machine, s1 machine',
    links: 'r1:ge-0/0/0 -- s1:ge-0/0/2',
    images: 'juniper_vjunosrouter-23.2R1.15.qcow2, juniper_vsrx-23.4.qcow2',
    leftOut: 'topology.nodes.r1.image, topology.nodes.r1.startup-config, topology.nodes.s1.image',
  },
  {
    file: '11-cisco.clab.yml',
    nodes: 'xr machine, csr machine, n9k machine',
    links: 'xr:Gi0/0/0/0 -- csr:Gi2; csr:Gi3 -- n9k:Ethernet1/1',
    images: 'cisco_xrv9k-7.11.qcow2, vr-csr-17.3.qcow2, cisco_n9kv-10.4.qcow2',
    leftOut:
      'topology.nodes.xr.image, topology.nodes.xr.startup-config, topology.nodes.csr.image, topology.nodes.n9k.image',
  },
  {
    file: '12-iol.clab.yml',
    nodes: 'r1 iou, r2 iou, sw iou',
    links: 'r1:e0/1 -- sw:e0/1; r2:e0/1 -- sw:e1/1',
    images: 'cisco_iol-17.12.01.bin',
    leftOut: 'topology.kinds.cisco_iol.image, topology.nodes.sw.type',
  },
  {
    file: '13-anchors.clab.yml',
    nodes: 'h1 container, h2 container',
    links: 'h1:eth1 -- h2:eth1',
    images: 'alpine_latest.tar',
    leftOut: 'x-host, topology.nodes.h1.image, topology.nodes.h2.image',
  },
  {
    file: '14-hosts-with-routes.clab.yml',
    nodes: 'h1 container, h2 container, gw container',
    links: 'h1:eth1 -- gw:eth1; h2:eth1 -- gw:eth2',
    images: 'alpine_latest.tar',
    leftOut: 'topology.defaults.image',
  },
  {
    file: '15-dhcp.clab.yml',
    nodes: 'client container, ros machine',
    links: 'br switch: client:eth1, ros:ether2',
    images: 'alpine_latest.tar, mikrotik_ros-7.16.qcow2',
    leftOut: 'topology.nodes.client.image, topology.nodes.br.kind, topology.nodes.ros.image',
  },
  {
    file: '16-traffic-generator.clab.yml',
    cannotRun: 'ixia',
    nodes: 'ixia machine, dut machine',
    links: 'ixia:eth1 -- dut:1/1/1; ixia:eth2 -- dut:1/1/2',
    images: 'nokia_sros-24.7.qcow2',
    leftOut: 'topology.nodes.dut.image, topology.nodes.dut.license',
  },
  {
    file: '17-service-providers.clab.yml',
    nodes: 'as1 container, as2 container, as3 machine',
    links: 'ix switch: as1:eth1, as2:eth1, as3:vio1',
    images: 'frrouting_frr_v8.4.1.tar, openbsd-7.6.qcow2',
    leftOut: 'topology.nodes.as1.image, topology.nodes.as2.image, topology.nodes.ix.kind, topology.nodes.as3.image',
  },
  {
    file: '18-firewall.clab.yml',
    nodes: 'fw machine, lan container, web container',
    links: 'fw:port2 -- lan:eth1; fw:port3 -- web:eth1',
    images: 'fortinet_fortigate-7.2.0.qcow2, alpine_latest.tar, nginx_latest.tar',
    leftOut:
      'topology.nodes.fw.image, topology.nodes.fw.ports[0], topology.nodes.lan.image, topology.nodes.web.image, topology.nodes.web.ports[0]',
  },
  {
    file: '19-unknown-kind.clab.yml',
    cannotRun: 'a',
    nodes: 'a machine, b machine',
    links: 'a:e1-1 -- b:Ethernet0',
    images: 'sonic-vm-202411.qcow2',
    leftOut: 'topology.nodes.b.image',
  },
  {
    file: '20-names.clab.yml',
    nodes: 'PC container, pc2 container, a-b container',
    links: 'PC:eth1 -- pc2:eth1',
    images: 'alpine_latest.tar',
    leftOut:
      'topology.nodes.PC.image, topology.nodes.pc, topology.nodes.pc.image, topology.nodes.a/b, topology.nodes.a/b.image, topology.vxlan',
  },
  {
    file: '21-frr-and-hosts.clab.yml',
    nodes: 'r1 container, r2 container, h1 container, h2 container, h3 container',
    links: 'r1:eth1 -- r2:eth1; r1:eth2 -- h1:eth1; r2:eth3 -- h2:eth1',
    images: 'frrouting_frr_v8.4.0.tar, wbitt_network-multitool_alpine-extra.tar, alpine_latest.tar',
    leftOut:
      'topology.kinds.linux.image, topology.groups.router.image, topology.groups.router.sysctls["kernel.msgmax"], topology.nodes.r1.binds[2], topology.nodes.r1.binds[3], topology.nodes.r1.binds[4], topology.nodes.r1.exec[1], topology.nodes.r1.cap-add[2], topology.nodes.r2.privileged, topology.nodes.r2.network-mode, topology.nodes.h1.ports[0], topology.nodes.h2.image, topology.nodes.h2.cmd, topology.links[2].endpoints[1]',
  },
])('$file', async ({ file, ...expected }) => {
  expect(await importedFixture(`containerlab/${file}`)).toEqual(expected)
})

const imported = (text: string, annotations?: string) => importLabFile({ text, annotations })
const topology = (nodes: string, links = '[]') => `name: x\ntopology:\n  nodes: ${nodes}\n  links: ${links}\n`

test('commands of a host at its start become the startup script of a pc', () => {
  const { file } = imported(
    topology(
      '{ a: { kind: linux, exec: ["sh -c \'ip addr add 10.0.0.2/24 dev eth1; ip route add default via 10.0.0.1\'"] } }',
    ),
  )
  expect(file.nodes).toEqual({ a: { kind: 'pc', config: { text: 'ip 10.0.0.2/24 10.0.0.1\n' } } })
})

test('containers of FRR and of hosts have the settings of their sections, and what cannot be there is listed', () => {
  const fixtures = join(import.meta.dirname, '../../fixtures/labs/containerlab')
  const text = readFileSync(join(fixtures, '21-frr-and-hosts.clab.yml'), 'utf8')
  const beside = ['routers/daemons', 'routers/setup.sh', 'routers/r1/frr.conf', 'routers/r1/more/vtysh.conf']
  const { file, leftOut, nodes } = importLabFile({ text, filesAt: filesNamed(beside) })
  const multitool = 'wbitt_network-multitool_alpine-extra'
  const [host, up] = ['TZ=UTC\nROLE=host', 'ip link set lo up']
  const daemons = { path: '/etc/frr/daemons', file: './routers/daemons' }
  const frr = 'frrouting_frr_v8.4.0'
  expect(file.templates).toEqual({
    [frr]: {
      kind: 'container',
      image: `${frr}.tar`,
      symbol: 'router',
      // The terminal of its command shows the log of its daemons.
      consoles: [
        { name: 'vtysh', exec: 'vtysh' },
        { name: 'shell', exec: '/bin/sh' },
      ],
      sysctls: 'net.ipv4.ip_forward=1\nnet.ipv6.conf.all.forwarding=1',
    },
    [multitool]: { kind: 'container', image: `${multitool}.tar`, environment: host },
  })
  expect(file.nodes).toEqual({
    r1: {
      is: frr,
      adapters: 2,
      environment: 'TZ=UTC\nROLE=router',
      files: [
        { path: '/run/exec-1.sh', text: "vtysh -c 'configure terminal\nrouter bgp 65001'\n" },
        { path: '/etc/frr/conf.d/frr.conf', file: './routers/r1/frr.conf' },
        { path: '/etc/frr/conf.d/more/vtysh.conf', file: './routers/r1/more/vtysh.conf' },
        { path: '/setup.sh', file: './routers/setup.sh', mode: '0755' },
        daemons,
      ],
      capabilities: ['SYS_ADMIN', 'SYS_PTRACE'],
      exec: `ip addr add 10.0.1.1/24 dev eth2\n${up}\n/setup.sh --quiet\nsh /run/exec-1.sh`,
      labels: { group: 'router' },
    },
    r2: {
      is: frr,
      adapters: 3,
      environment: host,
      files: [daemons],
      capabilities: ['SYS_ADMIN'],
      exec: up,
      ram: 512,
      labels: { group: 'router' },
    },
    h1: {
      is: multitool,
      adapters: 1,
      command: 'sh -c "sleep infinity"',
      entrypoint: '/sbin/tini --',
      exec: `ip addr add 10.0.1.2/24 dev eth1\n${up}`,
      management: { ports: ['8080:80'] },
    },
    h2: { kind: 'container', image: 'alpine_latest.tar', adapters: 1, environment: host, exec: up },
    h3: { is: multitool, adapters: 0, exec: up },
  })
  expect(file.management).toEqual({ network: '172.20.20.0/24' })
  expect(leftOut.filter(({ effect }) => effect === 'left-out').map(({ message }) => message)).toEqual([
    'is not imported: a container sets only parameters of its own network, net.*',
    'is not imported: no container gets the socket of Docker',
    'is not imported: "/lib/modules" is a path of the host; copy it below the directory of the topology',
    'is not imported: "../outside.conf" is not in the directory of the topology; copy it there',
    'is not imported: a container has no capability "SYS_MODULE" here',
    'is not imported: a container has rights within its own namespaces alone',
    'is not imported: a container has a network of its own, with its links alone',
    "is not imported: the quote ' is not closed",
  ])
  expect(leftOut.filter(({ effect }) => effect === 'changed').map(({ message }) => message)).toEqual([
    `the image "wbitt/network-multitool:alpine-extra" is the archive ${multitool}.tar here`,
    `the image "frrouting/frr:v8.4.0" is the archive ${frr}.tar here`,
    'a command of several lines becomes the file /run/exec-1.sh of the container',
    'the port is forwarded from the loopback of the host, not from all its addresses',
    'the image "docker.io/library/alpine" is the archive alpine_latest.tar here',
    '"net0" becomes eth1: the adapters of a container are eth0, eth1 and so on',
  ])
  expect(nodes[0]?.hint).toBe(
    `"patchbay images pull frrouting/frr:v8.4.0" fetches it, or "docker save -o ${frr}.tar frrouting/frr:v8.4.0" makes a file to upload`,
  )
})

test('the management network, addresses in it and ports of the host become that of the lab', () => {
  const mgmt = '{ network: lab, bridge: br-lab, ipv4-subnet: 10.9.0.0/24, ipv4-gw: 10.9.0.254 }'
  const nodes = `
    a: { kind: linux, image: alpine, mgmt-ipv4: 10.9.0.5, ports: ["8080:80", "127.0.0.2:53:53/udp", "9000", "80-90:80-90"] }
    b: { kind: linux, image: alpine, network-mode: none }
    r: { kind: vyosnetworks_vyos, image: "vyos:1.5", mgmt-ipv4: 10.9.0.6 }
    management: { kind: linux, image: alpine, mgmt-ipv4: 10.9.1.7 }`
  const { file, leftOut } = imported(
    `name: x\nmgmt: ${mgmt}\ntopology:\n  nodes:${nodes}\n  links:\n    - endpoints: [a:eth1, r:eth1]\n`,
  )
  expect(file.management).toEqual({ network: '10.9.0.0/24', name: 'management2' })
  expect(file.nodes).toMatchObject({
    a: { adapters: 1, management: { address: '10.9.0.5', ports: ['8080:80', '127.0.0.2:53:53/udp'] } },
    b: { adapters: 1, management: false },
    r: { adapters: 1, management: '10.9.0.6' },
  })
  expect(file.links).toEqual([['a:eth1', 'r:eth1']])
  expect(leftOut.map(({ path, message }) => `${path}: ${message}`).filter((it) => !it.includes('image'))).toEqual([
    'mgmt.ipv4-gw: is not imported: the first address is the gateway, and the nat chooses its IPv6 network',
    'topology.nodes.a.ports[0]: the port is forwarded from the loopback of the host, not from all its addresses',
    'topology.nodes.a.ports[2]: is not imported: expected HOST:NODE, such as 8080:80, with one port each',
    'topology.nodes.a.ports[3]: is not imported: expected HOST:NODE, such as 8080:80, with one port each',
    'topology.nodes.management: management: is not imported: 10.9.1.7 is not an address for a node of the management network 10.9.0.0/24; addresses are 10.9.0.3 to 10.9.0.254',
  ])
})

test('what nodes say of a management network in which they are not is listed', () => {
  const { leftOut } = importLabFile({
    text: `name: m
topology:
  nodes:
    a: { kind: linux, image: alpine, mgmt-ipv4: 172.20.20.11 }
    pc: { kind: linux, mgmt-ipv4: 172.20.20.12 }
    alone: { kind: linux, image: alpine, network-mode: none, ports: ["80:80"] }
    iol: { kind: cisco_iol, image: "iol:17", mgmt-ipv4: 172.20.20.13, ports: ["22:22"] }
    br: { kind: bridge, mgmt-ipv4: 172.20.20.14 }
  links: [{ endpoints: ["pc:eth1", "a:eth1"] }]
`,
  })
  const notTaken = leftOut.filter(({ message }) => message.includes('the node is not in the management network'))
  expect(notTaken.map(({ path }) => path)).toEqual([
    'topology.nodes.pc.mgmt-ipv4',
    'topology.nodes.alone.ports',
    'topology.nodes.iol.mgmt-ipv4',
    'topology.nodes.iol.ports',
    'topology.nodes.br.mgmt-ipv4',
  ])
})

test('variables and parameters of the kernel that a container cannot have are listed', () => {
  const { file, leftOut } = imported(
    topology(
      '{ a: { kind: linux, image: alpine, env: { A: "b=c", E: null, __IMPORT_ENVS: true, M: "1\\n2", "N O": 1 }, sysctls: { net.ipv4.conf.eth1.rp_filter: 0, net.a/b: 1, vm.x: 1 } } }',
    ),
  )
  expect(file.nodes.a).toMatchObject({
    environment: 'A=b=c\nE=\nN O=1',
    sysctls: 'net.ipv4.conf.eth1.rp_filter=0',
  })
  const parameter = 'is not imported: a container sets only parameters of its own network, net.*'
  expect(leftOut.map(({ message }) => message).slice(1)).toEqual([
    'is not imported: the variables of the computer are not read',
    'is not imported: a variable has a name and one line',
    parameter,
    parameter,
  ])
})

test('a bind whose files are not known names one, and of too many files or none in text the rest is listed', () => {
  const text = topology('{ a: { kind: linux, image: alpine, binds: ["conf:/etc/conf", "x:relative", "volume"] } }')
  const filesOf = (filesAt?: FilesAt) => {
    const { file, leftOut } = importLabFile({ text, ...(filesAt !== undefined && { filesAt }) })
    return [file.nodes.a?.files, leftOut.map(({ message }) => message).slice(1)]
  }
  const faults = [
    'is not imported: "relative" is not the absolute path of a file',
    'is not imported: expected a file and its path in the container, got "volume"',
  ]
  expect(filesOf()).toEqual([[{ path: '/etc/conf', file: './conf' }], faults])
  const texts = (count: number, isText: boolean) => (path: string) =>
    path === 'x'
      ? [{ path, isText: true, isProgram: false }]
      : Array.from({ length: count }, (_, index) => ({ path: `${path}/${index}`, isText, isProgram: true }))
  const [many, more] = filesOf(texts(70, true))
  expect([(many as object[]).length, (many as object[])[0]]).toEqual([
    64,
    { path: '/etc/conf/0', file: './conf/0', mode: '0755' },
  ])
  const limit = 'a container begins with at most 64 files, which have at most 1 MiB of text'
  expect(more).toEqual([`6 files not imported: ${limit}`, ...faults])
  const nothing = 'is not imported: there is no text file "conf" in the directory of the topology'
  expect(filesOf(texts(2, false))).toEqual([undefined, [nothing, ...faults]])
})

test('a host with two links becomes a guest that boots on a busy host, too, with its addresses', () => {
  const { file } = imported(
    topology(
      '{ r: { kind: linux, exec: [ip addr add 10.0.1.1/24 dev eth1, ip route add default via 10.0.1.254] }, a: { kind: linux }, b: { kind: linux } }',
      '[{ endpoints: ["r:eth1", "a:eth1"] }, { endpoints: ["r:eth2", "b:eth1"] }]',
    ),
  )
  expect(file.nodes?.r).toMatchObject({
    kernel_command_line: 'console=ttyS0 quiet no_timer_check pb.host=r pb.eth1=10.0.1.1/24 pb.via=10.0.1.254',
  })
})

test('a host without an image that forwards becomes a guest with FRR', () => {
  const { file, nodes } = imported(
    topology('{ r: { kind: linux, exec: [ip addr add 10.0.1.1/24 dev eth1, sysctl -w net.ipv4.ip_forward=1] } }'),
  )
  expect(file.nodes.r).toMatchObject({ kind: 'machine-emulator', initrd: 'frr.img' })
  expect(nodes[0]?.hint).toBe('examples/guests/make.sh makes vmlinuz and frr.img')
})

test('a setting comes from the node, its group, its kind or the defaults, in this order', () => {
  const { file } = imported(`
name: x
topology:
  defaults: { memory: 1Gb, cpu: 1, group: g }
  kinds: { arista_veos: { memory: 2Gb, cpu: 2, image: "veos:1" } }
  groups: { g: { memory: 3Gb, kind: arista_veos } }
  nodes:
    a: { memory: 4Gb }
    b: {}
`)
  expect(file.templates).toMatchObject({ 'arista_veos-1': { cpus: 2 } })
  const labels = { group: 'g' }
  expect(file.nodes).toEqual({
    a: { is: 'arista_veos-1', labels, ram: 4096 },
    b: { is: 'arista_veos-1', labels, ram: 3072 },
  })
})

test('positions come from the annotations of its editor, where the labels give none', () => {
  const annotations = JSON.stringify({
    nodeAnnotations: [
      { id: 'a', position: { x: 10.4, y: -20 } },
      { id: 'b', position: { x: 1, y: 1 } },
    ],
  })
  const { file } = imported(
    topology('{ a: { kind: linux }, b: { kind: linux, labels: { graph-posX: "7", graph-posY: "8" } } }'),
    annotations,
  )
  expect(file.nodes).toMatchObject({ a: { at: [10, -20] }, b: { at: [7, 8] } })
})

test('a configuration is a file beside the lab file, a text, or left out', () => {
  const { file, leftOut } = imported(
    topology(`{
    a: { kind: cisco_iol, startup-config: configs/__clabNodeName__.cfg },
    b: { kind: cisco_iol, startup-config: "hostname b\\nend\\n" },
    c: { kind: cisco_iol, startup-config: "https://example.org/c.cfg" } }`),
  )
  expect(file.nodes).toMatchObject({ a: { config: './configs/a.cfg' }, b: { config: { text: 'hostname b\nend\n' } } })
  expect(file.nodes.c).not.toHaveProperty('config')
  expect(leftOut).toContainEqual({
    path: 'topology.nodes.c.startup-config',
    line: 6,
    column: 27,
    effect: 'left-out',
    message: 'is not imported: download "https://example.org/c.cfg", and name the file',
  })
})

test.each([
  [
    'name: x\n',
    '1:1: this is not a lab of containerlab or GNS3 (they have "topology"), nor of CML (it has "lab" and "nodes")',
  ],
  ['', '1:1: the file is empty'],
  ['name: [a\n', '2:1: Flow sequence in block collection must be sufficiently indented and end with a ]'],
  ['name: a\ntopology: 3\n', '2:1: topology: expected an object, got 3'],
  ['name: x\ntopology: {}\n', '2:1: topology: nodes is missing'],
  [topology('[a]'), '3:3: topology.nodes: expected an object, got ["a"]'],
])('%j is refused: %s', (text, message) => {
  expect(() => imported(text)).toThrow(expect.objectContaining({ status: 400, message }))
})

const two = '{ a: { kind: linux }, b: { kind: linux } }'
test.each([
  [`${topology('{ a: { kind: linux } }')}---\nx: 1\n`, ': a second document begins here, and is not imported'],
  [`name: y\n${topology('{ a: { kind: linux } }')}`, 'name: the key occurs twice: the last one is used'],
  [topology('{ a: { kind: linux, <<: 1 } }'), 'topology.nodes.a: the merge key << has no map, and is ignored'],
  [
    topology(two, '[{ endpoints: [a:eth1] }]'),
    'topology.links[0].endpoints: is not imported: expected two endpoints, such as ["r1:eth1", "r2:eth1"]',
  ],
  [
    topology(two, '[{ endpoints: [a:eth1, a] }]'),
    'topology.links[0].endpoints[1]: is not imported: expected an endpoint such as "r1:eth1", got "a"',
  ],
  [
    topology('{ leaf1: { kind: linux } }', '[{ endpoints: [leaf1:eth1, leaf2:eth1] }]'),
    'topology.links[0].endpoints[1]: is not imported: there is no node "leaf2"; did you mean "leaf1"?',
  ],
  [
    topology(two, '[{ endpoints: [a:eth1, b:eth1] }, { endpoints: [a:eth1, b:eth2] }]'),
    'topology.links[1]: the link is not imported: a has another link',
  ],
  [
    topology('{ a: { kind: linux, wait-for: [b] } }'),
    'topology.nodes.a.wait-for[0]: is not imported: there is no node "b"; did you mean "a"?',
  ],
  [
    topology(two, '[{ type: veth-stitch, endpoint-a: { node: a, interface: eth1 } }]'),
    'topology.links[0]: the link is not imported: a lab file has no links of type "veth-stitch"',
  ],
  [
    topology(two, '[{ type: dummy, endpoint: { node: a, interface: eth7 } }]'),
    'topology.links[0]: the link is not imported: a lab file has no links of type "dummy"',
  ],
  [
    topology(two, '[{ endpoints: ["a:eth1", "host:longer-than-fifteen"] }]'),
    'topology.links[0].endpoints[1]: the link is not imported: "longer-than-fifteen" is not a name of a device, which has 1 to 15 characters',
  ],
  [topology('{ a: { kind: linux }, h: { kind: host } }'), 'topology.nodes.h: is not imported: no link uses it'],
  [
    topology('{ a: { kind: cisco_iol, startup-config: ../../secret.cfg } }'),
    'topology.nodes.a.startup-config: is not imported: "../../secret.cfg" is not in the directory of the topology; copy it there',
  ],
  [
    topology('{ a: { kind: arista_veos, cpu: many } }'),
    'topology.nodes.a.cpu: is not imported: expected a number, got "many"',
  ],
])('of %j all but one thing is taken over, which is listed: %s', (text, line) => {
  const { file, leftOut } = imported(text)
  expect(Object.keys(file.nodes)).not.toEqual([])
  expect(leftOut.map(({ path, message }) => `${path}: ${message}`)).toContain(line)
})

test.each([
  ['nokia_srlinux', 'it is a container of its vendor, and only ordinary ones (of the kind linux) can run here yet'],
  ['nokia_srlinx', 'the kind "nokia_srlinx" is not known, did you mean "nokia_srlinux"?'],
  ['', 'its kind is missing, expected one such as linux'],
])('a node of the kind "%s" cannot run: it keeps its name, place, ports and links', (kind, cannotRun) => {
  const links =
    '[{ endpoints: ["a:e10-1", "h:eth1"] }, { endpoints: ["a:e1-1", "a:e2-1"] }, { endpoints: ["a:eth0", "b:eth1"] }]'
  const { file, nodes } = imported(
    topology(
      `{ a: { ${kind === '' ? '' : `kind: ${kind}, `}labels: { graph-posX: 10, graph-posY: 20 } }, h: { kind: linux }, b: { kind: arista_veos } }`,
      links,
    ),
  )
  expect(nodes[0]).toMatchObject({ name: 'a', from: kind, cannotRun, line: 3, column: 12 })
  expect(file.nodes.a).toMatchObject({ at: expect.anything(), ports: ['eth0', 'e1-1', 'e2-1', 'e10-1'] })
  expect(file.links).toEqual([
    ['a:e10-1', 'h'],
    ['a:e1-1', 'a:e2-1'],
    ['a:eth0', 'b:eth1'],
  ])
})

test('a port of IOL is in the slot of its name, and eth5 is the first one of the slot after it', () => {
  const { file } = imported(
    topology(
      '{ r1: { kind: cisco_iol }, r2: { kind: cisco_iol } }',
      '[{ endpoints: ["r1:Ethernet1/1", "r2:Ethernet0/3"] }, { endpoints: ["r1:e2/0", "r2:eth4"] }]',
    ),
  )
  expect(file.links).toEqual([
    ['r1:e1/1', 'r2:e0/3'],
    ['r1:e2/0', 'r2:e1/0'],
  ])
  expect(file.nodes).toMatchObject({ r1: { ethernet_adapters: 3 }, r2: { ethernet_adapters: 2 } })
})

test.each([
  ['juniper_vmx', ['ge-0/0/0', 'ge-1/0/0']],
  ['linux', ['eth1', 'net1']],
])('interfaces of a %s whose numbers are equal (%j) are adapters in the order of their names', (kind, names) => {
  const ends = names.toReversed().map((name, index) => `{ endpoints: ["a:${name}", "b:eth${index + 1}"] }`)
  const { file, leftOut } = imported(
    topology(`{ a: { kind: ${kind} }, b: { kind: arista_veos } }`, `[${ends.join(', ')}]`),
  )
  expect(file.nodes.a?.ports).toEqual(['eth0', ...names])
  expect(file.links).toHaveLength(names.length)
  expect(leftOut.map(({ message }) => message)).toContain(
    `no rule is known for the slots in these names of interfaces, so they are the adapters 1, 2 and so on in this order: ${names.join(', ')}`,
  )
})

test('variables of the shell have their defaults, before the text is read as YAML', () => {
  const { file } = imported(
    topology(
      `{ h1: { kind: arista_veos, image: $\{IMG:=x:$\{V:-4.1}} } }`,
      `[{ endpoints: ["h1:eth1", "macvlan:$\{UP:=eth0}"] }]`,
    ),
  )
  expect(file.nodes.h1).toMatchObject({ image: 'arista_veos-4.1.qcow2' })
  expect(file.segments).toMatchObject({ eth0: { device: 'eth0' } })
  const exec = 'echo $$HOME $${A:-b} $HOME'
  const dollars = imported(topology(`{ h1: { kind: linux, image: alpine, exec: ['${exec}'] } }`, '[]'))
  expect(dollars.file.nodes.h1).toMatchObject({ exec: 'echo $HOME $${A:-b} $HOME' })
})
