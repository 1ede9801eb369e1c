/** A lab of 12 nodes that uses most of the format. */
export const example = `# yaml-language-server: $schema=http://127.0.0.1:3080/schemas/lab-1.json
lab: wan-edge
version: 1
vars: { img: vyos-1.5.qcow2 }

templates:
  pc: { kind: pc }
  router:
    kind: machine-emulator
    platform: x86_64
    image: \${img}
    ram: 512
    adapters: 4
    adapter_type: virtio-net-pci
    options: -machine graphics=off
    ports: eth{0}
    ready: { console: "login:", within: 5m }

nodes:
  PC1: { is: pc, at: [0, 0],     config: { text: "ip 10.0.1.10/24 10.0.1.1" } }
  PC2: { is: pc, at: [0, 80],    config: { text: "ip 10.0.1.11/24 10.0.1.1" } }
  PC3: { is: pc, at: [800, 0],   config: { text: "ip 10.0.2.10/24 10.0.2.1" } }
  PC4: { is: pc, at: [800, 80],  config: { text: "ip 10.0.2.11/24 10.0.2.1" } }
  R1:  { is: router, at: [200, 40], day0: { label: cidata, files: { user-data: ./r1.yaml, meta-data: { text: "" } } } }
  R2:  { is: router, at: [600, 40], day0: { label: cidata, files: { user-data: ./r2.yaml, meta-data: { text: "" } } } }
  R3:  { is: router, at: [200, 240] }
  R4:  { is: router, at: [600, 240] }
  CE1: { kind: iou, image: i86bi-l3.bin, ethernet_adapters: 1, serial_adapters: 1, config: ./ce1.cfg, after: [R1], ready: { console: "CE1[>#]", press: "\\r" } }
  CE2: { kind: iou, image: i86bi-l3.bin, ethernet_adapters: 1, serial_adapters: 1, config: ./ce2.cfg, after: [R2], ready: { console: "CE2[>#]", press: "\\r" } }
  FW:  { kind: hypervisor, vmname: opnsense, adapters: 2, linked_clone: true }
  MON: { is: router, ram: 256, start: false }

segments:
  lan1: { kind: switch, members: [PC1, PC2, R1:eth0] }
  lan2: { kind: switch, members: [PC3, PC4, R2:eth0] }
  inet: { kind: nat, members: [FW:1] }

links:
  - [R1:eth1, R3:eth0]
  - [R2:eth1, R4:eth0]
  - { name: core, ends: [R3:eth1, R4:eth1], delay: 40ms, jitter: 5ms, loss: 0.5%, rate: 10mbit }
  - [R3:eth2, FW:0]
  - [CE1:s1/0, CE2:s1/0]
  - [CE1:e0/0, R1:eth2]
  - { ends: [CE2:e0/0, R2:eth2], down: true }
  - [MON:eth0, R4:eth2]

starting: { at_once: 4, load_below: 85% }

checks:
  - { from: PC1, ping: PC3, within: 60s }
  - { on: CE1, type: "show ip ospf neighbor", expect: FULL, within: 90s }
  - { link: core, verdict: ok }
`

/** The files that it names. */
export const exampleFiles = {
  './r1.yaml': '#cloud-config\n',
  './r2.yaml': '#cloud-config\n',
  './ce1.cfg': 'hostname CE1\n',
  './ce2.cfg': 'hostname CE2\n',
}
