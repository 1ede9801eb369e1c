import { request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts } from '../support/ports.ts'
import { requireLibpcap, requireProgram } from '../support/require.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

// Mistakes that people make, with the answer to each: what was wrong, and between « and » what to do. `*` is any text.
// {P}, {PC}, {PC2}, {PC3} and {M} are a project, its pcs and its machine; the first pc has a link. {none} is the id of nothing.

type Mistake = [sent: string, body: unknown, status: number, message: string, headers?: Record<string, string>]

const compute = '/v2/compute'
const project = `${compute}/projects/{P}`
const pcs = `${project}/pc/nodes`
const pc = `${pcs}/{PC}`
const port = `${pc}/adapters/0/ports/0`
const machines = `${project}/machine-emulator/nodes`
/** Of the link of the first pc, of none, and of what is at the other end of every link. */
const linked = freePorts(3)
const [unused, rport] = [linked + 1, linked + 2]
const none = '99999999-0000-4000-8000-000000000000'

const mistakes: readonly Mistake[] = [
  [`POST ${compute}/projects`, {}, 400, 'name: missing, «expected a string of 1 to 255 characters, in one line»'],
  [
    `POST ${compute}/projects`,
    { name: 7 },
    400,
    'name: «expected a string of 1 to 255 characters, in one line», got 7',
  ],
  [
    `POST ${compute}/projects`,
    { name: '' },
    400,
    'name: «expected a string of 1 to 255 characters, in one line», got ""',
  ],
  [`POST ${compute}/projects`, { name: 'a', project_id: 'lab1' }, 400, 'project_id: «expected a UUID», got "lab1"'],
  [`POST ${compute}/projects`, { nmae: 'a' }, 400, 'nmae: unknown field, «did you mean name?»'],
  [
    `POST ${compute}/projects`,
    { name: 'a', colour: 'red' },
    400,
    'colour: unknown field, «expected one of auto_close, auto_open, auto_start, scene_width, scene_height, zoom, show_layers, snap_to_grid, show_grid, grid_size, drawing_grid_size, show_interface_labels, supplier, name, path, project_id, temporary, variables, compute_id»',
  ],
  [
    'POST /v2/projects',
    { name: 'a', variables: [{ value: 'x' }] },
    400,
    'variables[0].name: missing, «expected a string of *»',
  ],
  [`POST ${compute}/projects`, [], 400, 'body: «expected a JSON object such as {"name": "lab"}», got a list'],
  [`POST ${compute}/projects`, '"lab"', 400, 'body: «expected a JSON object such as {"name": "lab"}», got a string'],
  [
    `POST ${compute}/projects`,
    '{"name": "a",}',
    400,
    'body: not JSON: line 1, column 13: «there is a comma before } or ]: leave it out»',
  ],
  [
    `POST ${compute}/projects`,
    "{'name': 'a'}",
    400,
    'body: not JSON: line 1, column 2: «write names and strings in double quotes, not in single quotes»',
  ],
  [`POST ${compute}/projects`, '{name: "a"}', 400, 'body: not JSON: line 1, column 1: «write names in double quotes»'],
  [
    `POST ${compute}/projects`,
    '{"name": "a" "zoom": 1}',
    400,
    'body: not JSON: line 1, column 14: «a comma or a colon is missing before it»',
  ],
  [
    `POST ${compute}/projects`,
    '{"name" "a"}',
    400,
    'body: not JSON: line 1, column 9: «a comma or a colon is missing before it»',
  ],
  [`POST ${compute}/projects`, '{"name": "a"', 400, 'body: not JSON: «it ends too early: a } is missing»'],
  [
    `POST ${compute}/projects`,
    'name=lab',
    400,
    'body: not JSON: it looks like a form (name=value); «send JSON such as {"name": "lab"}»',
  ],
  [
    `POST ${machines}`,
    '{"name":"a","ram":NaN}',
    400,
    'body: not JSON: line 1, column 19: «NaN, Infinity, undefined and None are not JSON values: use a number or null»',
  ],
  [
    `POST ${compute}/projects`,
    'name: a',
    400,
    'body: not JSON: it looks like YAML; «send JSON such as {"name": "lab"}»',
  ],
  [
    `POST ${compute}/projects`,
    undefined,
    400,
    'name: missing, «expected a string of 1 to 255 characters, in one line»',
  ],
  [
    `POST ${compute}/projects`,
    { name: 'a', temporary: 'yes' },
    400,
    'temporary: «expected true or false», got "yes": write true or false, without quotes',
  ],
  [`POST ${compute}/projects`, { name: 'a', path: 'labs/a' }, 400, 'path: «expected an absolute path», got "labs/a"'],
  [
    `POST ${compute}/projects`,
    { name: 'a', path: '/proc/x' },
    403,
    'path: /proc, /sys and /dev cannot hold projects; «choose a directory on a disk»',
  ],
  [
    `POST ${compute}/projects`,
    { name: 'a', path: '/etc/passwd' },
    409,
    'path: this is a file, not a directory; «choose another path»',
  ],
  [
    `GET ${compute}/projects/{none}`,
    undefined,
    404,
    'project_id: there is no project {none}; «GET /v2/compute/projects lists the open projects»',
  ],
  [`GET ${compute}/projects/lab1`, undefined, 400, 'project_id: «expected a UUID», got "lab1"'],
  [
    `GET ${compute}/projects/99999999-0000-4000-8000`,
    undefined,
    400,
    'project_id: «expected a UUID», got "99999999-0000-4000-8000"',
  ],
  [
    `GET ${compute}/projects?status=opened`,
    undefined,
    400,
    'status: expected "open", "closed" or "all", got "opened", «did you mean "open"?»',
  ],
  [`PATCH ${project}`, { name: 'x' }, 405, 'Method PATCH is not allowed; «use GET, HEAD, PUT, DELETE or OPTIONS»'],
  [`DELETE ${compute}/projects`, undefined, 405, 'Method DELETE is not allowed; «use GET, HEAD, POST or OPTIONS»'],
  [`GET ${pc}/start`, undefined, 405, 'Method GET is not allowed; «use POST or OPTIONS»'],
  [`PUT ${pc}/start`, undefined, 405, 'Method PUT is not allowed; «use POST or OPTIONS»'],
  [
    'GET /v2/compute/project',
    undefined,
    404,
    'No such endpoint: /v2/compute/project. «Did you mean /v2/compute/projects?»',
  ],
  [
    'GET /v2/computer/projects',
    undefined,
    404,
    'No such endpoint: /v2/computer/projects. «Did you mean /v2/compute/projects?»',
  ],
  ['GET /projects', undefined, 404, 'No such endpoint: /projects. «Did you mean /v2/compute/projects?»'],
  ['GET /v3/projects', undefined, 404, 'No such endpoint: /v3/projects. «Did you mean /v2/compute/projects?»'],
  ['GET /v2/project', undefined, 404, 'No such endpoint: /v2/project. «Did you mean /v2/projects?»'],
  [
    'GET /api/v2/compute/projects',
    undefined,
    404,
    'No such endpoint: /api/v2/compute/projects. «Did you mean /v2/compute/projects?»',
  ],
  [
    'GET /v2//compute/projects',
    undefined,
    404,
    'No such endpoint: /v2//compute/projects. «Did you mean /v2/compute/projects?»',
  ],
  [
    'GET /V2/Compute/Projects',
    undefined,
    404,
    'No such endpoint: /V2/Compute/Projects. «Did you mean /v2/compute/projects?»',
  ],
  [
    `GET ${project}/vpcs/nodes`,
    undefined,
    404,
    'No such endpoint: /v2/compute/projects/{P}/vpcs/nodes. "vpcs" is called "pc" here: «use that, or set aliases = { vpcs = "pc" } in the configuration»',
  ],
  [
    `POST ${project}/vpcs/nodes`,
    { name: 'PC' },
    404,
    'No such endpoint: /v2/compute/projects/{P}/vpcs/nodes. "vpcs" is called "pc" here: «use that, or set aliases = { vpcs = "pc" } in the configuration»',
  ],
  [
    `POST ${project}/qemu/nodes`,
    { name: 'R' },
    404,
    'No such endpoint: /v2/compute/projects/{P}/qemu/nodes. "qemu" is called "machine-emulator" here: «use that, or set aliases = { qemu = "machine-emulator" } in the configuration»',
  ],
  [
    'GET /v2/compute/virtualbox/vms',
    undefined,
    404,
    'No such endpoint: /v2/compute/virtualbox/vms. "virtualbox" is called "hypervisor" here: «use that, or set aliases = { virtualbox = "hypervisor" } in the configuration»',
  ],
  [
    'GET /v2/gns3vm',
    undefined,
    404,
    'No such endpoint: /v2/gns3vm. "gns3vm" is called "appliancevm" here: «use that, or set aliases = { gns3vm = "appliancevm" } in the configuration»',
  ],
  [
    'POST /v1/projects/{P}/vpcs/vms',
    { name: 'x' },
    404,
    'No such endpoint: /v1/projects/{P}/vpcs/vms. "vpcs" is called "pc" here: «use that, or set aliases = { vpcs = "pc" } in the configuration»',
  ],
  [
    `POST ${project}/machine-emulators/nodes`,
    { name: 'x' },
    404,
    'No such endpoint: /v2/compute/projects/{P}/machine-emulators/nodes. «Did you mean /v2/compute/projects/{P}/machine-emulator/nodes?»',
  ],
  [
    `POST ${project}/docker/nodes`,
    { name: 'x' },
    404,
    'No such endpoint: /v2/compute/projects/{P}/docker/nodes. «"docker" is called "container" here: use that, or set aliases = { docker = "container" } in the configuration»',
  ],
  [
    `GET ${project}/pc/node/{PC}`,
    undefined,
    404,
    'No such endpoint: /v2/compute/projects/{P}/pc/node/{PC}. «Did you mean /v2/compute/projects/{P}/pc/nodes/{PC}?»',
  ],
  [
    `GET ${project}/iou/nodes/{PC}`,
    undefined,
    404,
    'node_id: the project has no iou node {PC}; «the id belongs to a node of kind pc»',
  ],
  [
    `GET ${pcs}/{none}`,
    undefined,
    404,
    'node_id: the project has no pc node {none}; «GET .../pc/nodes lists its nodes»',
  ],
  [`GET ${pcs}/PC1`, undefined, 400, 'node_id: «expected a UUID», got "PC1"'],
  [`POST ${pcs}`, {}, 400, 'name: missing, «expected a string of 1 to 255 characters, in one line»'],
  [
    `POST ${pcs}`,
    { name: ['a'] },
    400,
    'name: «expected a string of 1 to 255 characters, in one line», got a list of 1 item',
  ],
  [
    `POST ${pcs}`,
    { name: 'a', console: '5000' },
    400,
    'console: «expected an integer from 1 to 65535», got "5000": write the number without quotes',
  ],
  [`POST ${pcs}`, { name: 'a', console: 99999 }, 400, 'console: «expected an integer from 1 to 65535», got 99999'],
  [`POST ${pcs}`, { name: 'a', console_type: 'ssh' }, 400, 'console_type: «expected "telnet" or "none"», got "ssh"'],
  [`PUT ${pc}`, { startup_scripts: 'x' }, 400, 'startup_scripts: unknown field, «did you mean startup_script?»'],
  [
    `PUT ${pc}`,
    { mac_address: '00:50:79:66:68:fe' },
    400,
    'mac_address: this member is read-only: it is "*", got "00:50:79:66:68:fe"; «members that can be set: name, console, console_type, startup_script»',
  ],
  [
    `PUT ${pc}`,
    { node_id: '{none}' },
    400,
    'node_id: this member is read-only: it is "*", got "*"; «members that can be set: name, console, console_type, startup_script»',
  ],
  [`POST ${pcs}`, { name: 'a\nb' }, 400, 'name: «expected a string of 1 to 255 characters, in one line», got "a\\nb"'],
  [
    `POST ${pcs}`,
    { name: 'a'.repeat(300) },
    400,
    'name: «expected a string of 1 to 255 characters, in one line», got "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...',
  ],
  [
    `POST ${port}/nio`,
    {},
    400,
    'type: missing, «expected one of nio_udp, nio_generic_ethernet, nio_ethernet, nio_tap»',
  ],
  [
    `POST ${port}/nio`,
    { lport: 1, rhost: 'x', rport: 2 },
    400,
    'type: missing, «expected one of nio_udp, nio_generic_ethernet, nio_ethernet, nio_tap»',
  ],
  [
    `POST ${port}/nio`,
    { type: 'nio_vde' },
    400,
    'type: a pc node does not support nio_vde, «expected one of nio_udp, nio_generic_ethernet, nio_ethernet, nio_tap»',
  ],
  [
    `POST ${port}/nio`,
    { type: 'udp', lport: unused, rhost: '127.0.0.1', rport },
    400,
    'type: unknown NIO type "udp", expected one of nio_udp, nio_generic_ethernet, nio_ethernet, nio_tap, «did you mean nio_udp?»',
  ],
  [
    `POST ${port}/nio`,
    { type: 'nio_udp', lport: unused, rhost: '127.0.0.1' },
    400,
    'rport: missing, «expected an integer from 1 to 65535»',
  ],
  [
    `POST ${port}/nio`,
    { type: 'nio_udp', lport: unused, rhost: '127.0.0.1', remote_port: 3 },
    400,
    'remote_port: unknown field, «expected one of type, lport, rhost, rport, suspend, filters»',
  ],
  [
    `POST ${port}/nio`,
    { type: 'nio_udp', lport: '40101', rhost: '127.0.0.1', rport },
    400,
    'lport: «expected an integer from 1 to 65535», got "40101": write the number without quotes',
  ],
  [
    `POST ${port}/nio`,
    { type: 'nio_udp', lport: 0, rhost: '127.0.0.1', rport },
    400,
    'lport: «expected an integer from 1 to 65535», got 0',
  ],
  [
    `POST ${pcs}/{PC2}/adapters/0/ports/0/nio`,
    { type: 'nio_udp', lport: linked, rhost: '127.0.0.1', rport },
    409,
    `lport: UDP port ${linked} is in use by another link or node; «POST .../ports/udp reserves a free one»`,
  ],
  [
    `POST ${port}/nio`,
    { type: 'nio_udp', lport: unused, rhost: 'no host', rport },
    400,
    'rhost: "no host" cannot be resolved: there is no such host; «expected an IP address, or a name that this host can resolve»',
  ],
  [
    `POST ${port}/nio`,
    { type: 'nio_udp', lport: unused, rhost: 'nowhere.invalid', rport },
    400,
    'rhost: "nowhere.invalid" cannot be resolved: *; «expected an IP address, or a name that this host can resolve»',
  ],
  [
    `POST ${port}/nio`,
    { type: 'nio_udp', lport: unused, rhost: '127.0.0.1', rport: 70000 },
    400,
    'rport: «expected an integer from 1 to 65535», got 70000',
  ],
  [
    `POST ${port}/nio`,
    { type: 'nio_ethernet', ethernet_device: 'eth9' },
    404,
    'ethernet_device: the host has no network device eth9; «the host has *»',
  ],
  [
    `POST ${port}/nio`,
    { type: 'nio_ethernet' },
    400,
    'ethernet_device: missing, «expected the name of a network device: 1 to 15 ASCII characters without blanks, slashes, % and :»',
  ],
  [
    `POST ${port}/nio`,
    { type: 'nio_tap', tap_device: 'averylongdevicename' },
    400,
    'tap_device: «expected the name of a network device: 1 to 15 ASCII characters without blanks, slashes, % and :», got "averylongdevicename"',
  ],
  [
    `POST ${pc}/adapters/1/ports/0/nio`,
    { type: 'nio_udp', lport: unused, rhost: '127.0.0.1', rport },
    404,
    'adapter_number: the node has no adapter 1, «its adapters are numbered from 0 to 0»',
  ],
  [
    `POST ${pc}/adapters/e0/ports/0/nio`,
    { type: 'nio_udp', lport: unused, rhost: '127.0.0.1', rport },
    400,
    'adapter_number: «expected a number written in digits», got "e0"',
  ],
  [
    `POST ${pc}/adapters/0/ports/5/nio`,
    { type: 'nio_udp', lport: unused, rhost: '127.0.0.1', rport },
    404,
    'port_number: adapter 0 has no port 5, «its ports are numbered from 0 to 0»',
  ],
  [
    `DELETE ${pcs}/{PC3}/adapters/0/ports/0/nio`,
    undefined,
    404,
    'Nothing is attached to adapter 0, port 0; «attach a NIO with POST»',
  ],
  [
    `PUT ${pcs}/{PC3}/adapters/0/ports/0/nio`,
    { type: 'nio_udp', lport: unused, rhost: '127.0.0.1', rport },
    404,
    'Nothing is attached to adapter 0, port 0; «attach a NIO with POST»',
  ],
  [
    `PUT ${port}/nio`,
    { type: 'nio_udp', lport: linked, rhost: '127.0.0.1', rport, filters: { loss: [1] } },
    400,
    'filters.loss: unknown field, «expected one of frequency_drop, packet_loss, delay, corrupt, bpf, rate, duplicate, reorder»',
  ],
  [
    `PUT ${port}/nio`,
    { type: 'nio_udp', lport: linked, rhost: '127.0.0.1', rport, filters: { packet_loss: 1 } },
    400,
    'filters.packet_loss: «expected a list: [percent]», got 1',
  ],
  [
    `PUT ${port}/nio`,
    { type: 'nio_udp', lport: linked, rhost: '127.0.0.1', rport, filters: { delay: [1, 2, 3] } },
    400,
    'filters.delay: «expected a list: [latency in ms, jitter in ms]», got a list of 3 items',
  ],
  [
    `PUT ${port}/nio`,
    { type: 'nio_udp', lport: linked, rhost: '127.0.0.1', rport, filters: { packet_loss: [150] } },
    400,
    'filters.packet_loss[0]: «expected a number from 0 to 100», got 150',
  ],
  [
    `PUT ${port}/nio`,
    { type: 'nio_udp', lport: linked, rhost: '127.0.0.1', rport, filters: { delay: ['50ms'] } },
    400,
    'filters.delay[0]: «expected a number from 0 to 32767», got "50ms": write the number alone, without unit and quotes',
  ],
  [
    `PUT ${port}/nio`,
    { type: 'nio_udp', lport: linked, rhost: '127.0.0.1', rport, filters: [{ delay: 50 }] },
    400,
    'filters: «expected an object of filters, such as {"delay": [50, 10], "packet_loss": [1]}», got a list of 1 item',
  ],
  [
    `PUT ${port}/nio`,
    { type: 'nio_udp', lport: linked, rhost: '127.0.0.1', rport, filters: { delay: [-5] } },
    400,
    'filters.delay[0]: «expected a number from 0 to 32767», got -5',
  ],
  [
    `PUT ${port}/nio`,
    { type: 'nio_udp', lport: linked, rhost: '127.0.0.1', rport, suspend: 'on' },
    400,
    'suspend: «expected true or false», got "on": write true or false, without quotes',
  ],
  [`POST ${port}/start_capture`, {}, 400, 'capture_file_name: missing, «expected the name of a file, without slashes»'],
  [
    `POST ${port}/start_capture`,
    { capture_file_name: '../../x.pcap' },
    400,
    'capture_file_name: «expected the name of a file, without slashes», got "../../x.pcap"',
  ],
  [
    `POST ${pcs}/{PC3}/adapters/0/ports/0/start_capture`,
    { capture_file_name: 'x.pcap' },
    409,
    'Nothing is attached to the port: «attach a NIO first»',
  ],
  [
    `POST ${port}/start_capture`,
    { capture_file_name: 'x.pcap', data_link_type: 'ethernet' },
    400,
    'data_link_type: «expected "DLT_EN10MB", "DLT_PPP_SERIAL", "DLT_ATM_RFC1483", "DLT_C_HDLC" or "DLT_FRELAY"», got "ethernet"',
  ],
  [`GET ${port}/pcap`, undefined, 409, 'The port is not being captured: «start a capture first»'],
  [
    `GET ${port}/pcap?format=pcap2`,
    undefined,
    400,
    'format: expected "pcap" or "pcapng", got "pcap2", «did you mean "pcap"?»',
  ],
  [
    `POST ${project}/iou/nodes`,
    { name: 'r' },
    400,
    'path: missing, «expected the name or path of an image, in one line»',
  ],
  [
    `POST ${project}/iou/nodes`,
    { name: 'r', path: 'nothere.bin' },
    409,
    'image: "nothere.bin" does not exist; «upload it, then try again»',
  ],
  [
    `POST ${project}/iou/nodes`,
    { name: 'r', path: 'x.bin', ethernet_adapters: 99 },
    400,
    'ethernet_adapters: «expected an integer from 0 to 16», got 99',
  ],
  [`POST ${pc}/duplicate`, {}, 400, 'destination_node_id: missing, «expected a UUID»'],
  [
    `POST ${pc}/duplicate`,
    { destination_node_id: '{none}' },
    404,
    'destination_node_id: the project has no pc node {none}; «create it first, then copy into it»',
  ],
  [
    `GET ${compute}/pc/images`,
    undefined,
    404,
    'No such endpoint: /v2/compute/pc/images. «Expected projects, iou, machine-emulator, dynamips, container in place of "pc"»',
  ],
  [
    `GET ${compute}/machine-emulator/images/nothere.qcow2`,
    undefined,
    409,
    'image: there is no "nothere.qcow2"; «GET .../images lists the images»',
  ],
  [
    `PUT ${compute}/machine-emulator/images/nothere.qcow2`,
    { path: 'other.qcow2' },
    404,
    'image: there is no "nothere.qcow2"; «GET .../images lists the images»',
  ],
  [
    `PUT ${compute}/machine-emulator/images/nothere.qcow2`,
    { path: 'vendor/other.qcow2' },
    400,
    'path: an image stays in its directory: «expected "other.qcow2"», got "vendor/other.qcow2"',
  ],
  [
    `POST ${compute}/machine-emulator/images/..%2fx`,
    'x',
    403,
    'path: "../x" is not a valid image name: «expected one without "..", a leading dot or slash»',
  ],
  [
    `POST ${compute}/machine-emulator/images/x.img?md5sum=00000000000000000000000000000000`,
    'x',
    400,
    'md5: «expected 00000000000000000000000000000000», but the received content has 9dd4e461268c8034f5c8564e155c67a6; nothing was stored',
  ],
  [
    `POST ${compute}/machine-emulator/images/x.img?md5sum=abc`,
    'x',
    400,
    'md5sum: «expected 32 hexadecimal digits», got "abc"',
  ],
  [
    `POST ${compute}/machine-emulator/images/x.img`,
    'x',
    400,
    'Content-Range: «expected "bytes FIRST-LAST/TOTAL" or "bytes */TOTAL"», got "0-1/2"',
    { 'content-range': '0-1/2' },
  ],
  [
    `GET ${project}/files/..%2f..%2fx`,
    undefined,
    403,
    'path: "../../x" is not inside the project: «expected a path below its directory, without ".."»',
  ],
  [
    `GET ${project}/files/nothere.txt`,
    undefined,
    404,
    'path: there is no file "nothere.txt"; «GET .../files lists the files of the project»',
  ],
  [`GET ${compute}/notifications?since=abc`, undefined, 400, 'since: «expected the seq of an event», got "abc"'],
  [
    'POST /v2/computes',
    { protocol: 'ftp', host: '10.0.0.2', port: 3080 },
    400,
    'protocol: «expected "http" or "https"», got "ftp"',
  ],
  [
    'POST /v2/computes',
    { protocol: 'http', port: 3080 },
    400,
    'host: missing, «expected a host name, an IPv4 or an IPv6 address»',
  ],
  [
    'POST /v2/computes',
    { protocol: 'http', host: 'http://10.0.0.2', port: 3080 },
    400,
    'host: «expected a host name, an IPv4 or an IPv6 address», got "http://10.0.0.2"',
  ],
  [
    'GET /v2/computes/nothere',
    undefined,
    404,
    'compute_id: there is no compute nothere; «GET /v2/computes lists the computes»',
  ],
  [
    'POST /v2/computes',
    { protocol: 'http', host: '169.254.169.254', port: 80 },
    400,
    'host: 169.254.169.254 is a link-local, multicast or cloud metadata address; «no compute can have it»',
  ],
  [
    'POST /v2/tokens',
    { name: 'ci', role: 'admin', limits: { max_running: 5 } },
    400,
    'limits: «expected for tokens with the role read or operate» alone; an administrator has none',
  ],
  ['POST /v2/tokens', { name: 'ci', role: 'root' }, 400, 'role: «expected "read", "operate" or "admin"», got "root"'],
  [
    'POST /v2/links',
    { nodes: [{ project_id: '{P}', node_type: 'pc', node_id: '{PC}', adapter_number: 0, port_number: 0 }] },
    400,
    'nodes: «expected a list of 2 items», got a list of 1 item',
  ],
  [
    'POST /v2/links',
    {
      nodes: [
        { project_id: '{P}', node_type: 'vpcs', node_id: '{PC}', adapter_number: 0, port_number: 0 },
        { project_id: '{P}', node_type: 'pc', node_id: '{PC2}', adapter_number: 0, port_number: 0 },
      ],
    },
    400,
    'nodes[0].node_type: expected "pc", "iou", "hypervisor", "machine-emulator", "dynamips", "container", "switch", "hub", "cloud" or "nat", got "vpcs", «did you mean "pc"?»',
  ],
  [
    'PUT /v2/appliancevm',
    { enable: true, engine: 'vmware', vmname: 'x' },
    400,
    'engine: «expected "libvirt", "virtualbox" or "remote"», got "vmware"',
  ],
  [
    `DELETE ${project}/ports/udp/40900`,
    undefined,
    404,
    'udp_port: 40900 is not reserved for the project; «if a NIO uses it, delete the NIO instead»',
  ],
  [
    'POST /v1/projects/{P}/pc/vms',
    { name: 'x', vm_id: 'abc' },
    400,
    'vm_id: «expected a UUID or an integer of at least 0», got "abc"',
  ],
  [
    `POST ${compute}/dynamips/auto_idlepc`,
    {},
    404,
    'No such endpoint: /v2/compute/dynamips/auto_idlepc. «Expected images, image_uses in place of "auto_idlepc"»',
  ],
  [
    'POST /v2/computes/local/auto_idlepc',
    { platform: 'c9999', image: 'x', ram: 512 },
    400,
    'platform: «expected "c1700", "c2600", "c2691", "c3600", "c3725", "c3745" or "c7200"», got "c9999"',
  ],
  [
    'GET /v2/compute/../x',
    undefined,
    400,
    'The path contains a dot segment or a backslash: «send the normalized path»',
  ],
  [
    `GET ${pcs}/%zz`,
    undefined,
    400,
    'node_id: malformed percent-encoding in the path; «write a literal percent sign as %25»',
  ],
  [
    `GET ${compute}/projects`,
    undefined,
    403,
    'Host: "evil.example" is not a name of this service; «add it to allowed_hosts to use it»',
    { host: 'evil.example' },
  ],
  [`GET ${pc}/console/ws`, undefined, 404, 'This endpoint is a websocket: «send "Upgrade: websocket"»'],
  [
    `GET ${pc}/console/vnc`,
    undefined,
    404,
    'No such endpoint: /v2/compute/projects/{P}/pc/nodes/{PC}/console/vnc. «Expected ws, reset, watch, log, expect in place of "vnc"»',
  ],
  [
    `POST ${compute}/projects`,
    { name: 'a', path: 'y'.repeat(1_100_000) },
    413,
    'body: larger than the limit of 1048576 bytes «(limits.json_kb)»',
  ],
]

const mistakesInExpressions: readonly Mistake[] = [
  [
    `PUT ${port}/nio`,
    { type: 'nio_udp', lport: linked, rhost: '127.0.0.1', rport, filters: { bpf: ['icmpp'] } },
    400,
    'filters.bpf: can\'t parse filter expression: syntax error at character 1 (near "icmpp"); «expected tcpdump expressions such as "icmp" or "tcp port 80"»',
  ],
]

const mistakesWithMachines: readonly Mistake[] = [
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', ram: '512M' },
    400,
    'ram: «expected an integer from 1 to 16777216», got "512M": write the number alone, without unit and quotes (Memory, MB)',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', ram: 99999999 },
    400,
    'ram: «expected an integer from 1 to 16777216», got 99999999',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', ram: -1 },
    400,
    'ram: «expected an integer from 1 to 16777216», got -1',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', adapters: 400 },
    400,
    'adapters: «expected an integer from 0 to 275», got 400',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'amd64' },
    400,
    'platform: expected "aarch64", "alpha", "arm", "cris", "i386", "lm32", "m68k", "microblaze", "microblazeel", "mips", "mips64", "mips64el", "mipsel", "moxie", "or32", "ppc", "ppc64", "ppcemb", "s390x", "sh4", "sh4eb", "sparc", "sparc64", "tricore", "unicore32", "x86_64", "xtensa", "xtensaeb", "riscv32", "riscv64", "loongarch64", "null" or "", got "amd64", «did you mean "x86_64"?»',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', hda_disk_interface: 'nvm' },
    400,
    'hda_disk_interface: expected "ide", "sata", "nvme", "scsi", "sd", "mtd", "floppy", "pflash", "virtio" or "none", got "nvm", «did you mean "nvme"?»',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', hda_disk_image: 'nothere.qcow2' },
    409,
    'hda_disk_image: "nothere.qcow2" does not exist; «upload it, then try again»',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', hda_disk_image: '../x.qcow2' },
    409,
    'hda_disk_image: "../x.qcow2" does not exist; «upload it, then try again»',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', mac_address: '00:11:22' },
    400,
    'mac_address: «expected a MAC address such as 0c:12:34:56:78:00, or nothing», got "00:11:22"',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', boot_priority: 'x' },
    400,
    'boot_priority: «expected "c", "d", "n", "cn", "cd", "dn", "dc", "nc" or "nd"», got "x"',
  ],
  [
    `POST ${machines}`,
    { name: 'm', qemu_path: '/usr/bin/qemu-nope' },
    409,
    'qemu_path: qemu-nope is not the name of an emulator; «expected one such as qemu-system-x86_64»',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', options: '-monitor stdio' },
    400,
    'options: -monitor cannot be used, the monitor is used by the service: «leave it out»',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', on_close: 'poweroff' },
    400,
    'on_close: expected "power_off", "shutdown_signal" or "save_vm_state", got "poweroff", «did you mean "power_off"?»',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', console_type: 'rdp' },
    400,
    'console_type: «expected "telnet", "vnc", "spice", "spice+agent" or "none"», got "rdp"',
  ],
  [
    `POST ${machines}`,
    { name: 'm', platform: 'x86_64', custom_adapters: { adapter_number: 0 } },
    400,
    'custom_adapters: «expected a list of at most 275 items», got an object',
  ],
  [
    `POST ${machines}/{M}/resize_disk`,
    { drive_name: 'hde', extend: 10 },
    400,
    'drive_name: expected "hda", "hdb", "hdc" or "hdd", got "hde", «did you mean "hda"?»',
  ],
  [
    `POST ${machines}/{M}/resize_disk`,
    { drive_name: 'hda', extend: 10 },
    409,
    'The node has no disk hda: «set hda_disk_image first»',
  ],
  [
    `POST ${compute}/machine-emulator/img`,
    { path: 'a.qcow2', format: 'qcow3', size: 10 },
    400,
    'format: got "qcow3", «expected one of qcow2, qcow, raw, vmdk, vdi, vpc, qed, parallels»',
  ],
  [
    `POST ${compute}/machine-emulator/img`,
    { path: 'a.qcow2', format: 'qcow2', size: '10G' },
    400,
    'size: «expected an integer from 1 to 67108864», got "10G": write the number alone, without unit and quotes (Size of the disk, MB (MiB))',
  ],
  [
    `POST ${compute}/machine-emulator/img`,
    { path: 'a.qcow2', format: 'qcow2' },
    400,
    'size: missing, «expected an integer from 1 to 67108864»',
  ],
  [
    `POST ${compute}/machine-emulator/img`,
    { path: 'a.raw', format: 'raw', size: 10, lazy_refcounts: 'on' },
    400,
    'lazy_refcounts: the format raw has no such option, «it has preallocation»',
  ],
]

let service: TestService
/** What stands for the names in braces. */
const ids: Record<string, string> = { none }
const qemu = requireProgram('qemu-system-x86_64')

beforeAll(async () => {
  service = await TestService.startForAll({ 'pc.engine': 'embedded' })
  const { project_id } = await service.call<{ project_id: string }>('POST', `${compute}/projects`, { name: 'lab' })
  ids.P = project_id
  const lab = `${compute}/projects/${project_id}`
  for (const [index, name] of ['PC', 'PC2', 'PC3'].entries()) {
    ids[name] = (await service.call<{ node_id: string }>('POST', `${lab}/pc/nodes`, { name: `PC${index + 1}` })).node_id
  }
  const nio = { type: 'nio_udp', lport: linked, rhost: '127.0.0.1', rport }
  await service.call('POST', filled(`${port}/nio`), nio)
  if (!qemu.skip) {
    const machine = { name: 'M', platform: 'x86_64', ram: 64 }
    ids.M = (await service.call<{ node_id: string }>('POST', `${lab}/machine-emulator/nodes`, machine)).node_id
  }
})
afterAll(() => service.close())

const filled = (text: string): string =>
  text.replace(/\{(P|PC|PC2|PC3|M|none)\}/g, (_, name: string) => ids[name] ?? '')

/** The path is sent as it is: `fetch` would mend some of the mistakes. */
function send([sent, body, , , headers]: Mistake): Promise<{ status: number; text: string }> {
  const [method = '', path = ''] = sent.split(/ (.*)/s)
  const text = body === undefined ? '' : filled(typeof body === 'string' ? body : JSON.stringify(body))
  const { hostname, port } = new URL(service.url)
  return new Promise((resolve, reject) => {
    const length = text === '' ? {} : { 'Content-Length': Buffer.byteLength(text) }
    const asked = request(
      { hostname, port, method, path: filled(path), headers: { ...length, ...headers } },
      (answer) => {
        let got = ''
        answer.setEncoding('utf8').on('data', (part: string) => {
          got += part
        })
        answer.on('error', reject)
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: got }))
      },
    )
    asked.on('error', reject)
    asked.end(text)
  })
}

async function expectMessage(mistake: Mistake): Promise<void> {
  const [, , status, message] = mistake
  const answer = await send(mistake)
  expect(message, 'the table says what to do').toMatch(/[^«]{4}.*«.+»|«.+».+/)
  const { message: said, ...rest } = JSON.parse(answer.text) as { message: string; status: number; image?: string }
  expect(rest.status).toBe(answer.status)
  const parts = filled(message.replace(/[«»]/g, ''))
    .split('*')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  expect({ status: answer.status, said }).toEqual({
    status,
    said: expect.stringMatching(new RegExp(`^${parts.join('.*')}$`)),
  })
}

test('there are at least 120 mistakes', () => {
  expect(mistakes.length + mistakesWithMachines.length + mistakesInExpressions.length).toBeGreaterThanOrEqual(120)
})

test.for(mistakes)('%#. %s is answered with the mistake and its correction', expectMessage)

testWith(qemu).for(mistakesWithMachines)('%#. %s is answered with the mistake and its correction', expectMessage)

testWith(requireLibpcap()).for(mistakesInExpressions)(
  '%#. %s is answered with the mistake and its correction',
  expectMessage,
)
