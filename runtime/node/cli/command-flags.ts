import { inventoryFormats } from '../../../src/model/lab/inventory.ts'
import { type Flag, logging, outputFlags, serviceFlags } from './command.ts'

// Flags of commands in the table; the modules of the commands know their types by them.

/** Of `link`: the keys of an impairment of lab files, and what else changes a link. */
export const linking = {
  delay: { value: 'TIME', about: 'delay of each frame, such as 20ms' },
  jitter: { value: 'TIME', about: 'variation of the delay, such as 5ms; with --delay' },
  loss: { value: 'SHARE', about: 'share of frames to drop at random, such as 0.5%' },
  rate: { value: 'RATE', about: 'maximum rate, such as 10mbit' },
  burst: { value: 'SIZE', about: 'burst above the rate, such as 16kb; with --rate' },
  'longest-wait': { value: 'TIME', about: 'drop frames that would wait longer than this; with --rate' },
  corrupt: { value: 'SHARE', about: 'share of frames to change a byte in, such as 0.5%' },
  duplicate: { value: 'SHARE', about: 'share of frames to send twice, such as 0.5%' },
  reorder: { value: 'SHARE', about: 'share of frames to hold back, so that later ones overtake them' },
  held: { value: 'TIME', about: 'how long to hold them back; with --reorder' },
  'drop-every': { value: 'N', about: 'drop every Nth frame; -1 drops all' },
  bpf: { value: 'EXPRESSION', about: 'drop frames that match a tcpdump expression' },
  'bpf-link-type': { value: 'TYPE', about: 'link type for --bpf, such as DLT_PPP_SERIAL' },
  there: { about: 'impair only frames from the first end to the second' },
  back: { about: 'impair only frames from the second end to the first' },
  clear: { about: 'remove all other impairment' },
  suspend: { about: 'drop all frames, like an unplugged cable' },
  resume: { about: 'let frames pass again' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const consoling = {
  escape: { value: 'CHARACTER', about: 'escape character, or none (default: ^], which is Ctrl-])' },
  name: { value: 'NAME', about: 'another console of a container, such as shell' },
  log: { value: 'FILE', about: 'also append the output to a file', complete: 'file' },
  telnet: { about: 'use telnet to the compute instead of a websocket to the service' },
  server: serviceFlags.server,
} as const satisfies Readonly<Record<string, Flag>>

/** Of `mcp`, whose standard output belongs to the protocol. */
export const assisting = {
  approve: { about: 'make no change before the tool "confirm" was called with the number of its plan' },
  server: serviceFlags.server,
} as const satisfies Readonly<Record<string, Flag>>

export const executing = {
  expect: { value: 'REGEX', about: 'wait until the output matches (default: until the node is silent for 1.5 s)' },
  'no-echo': { about: 'with --expect: the node does not echo input, as at a password prompt' },
  within: { value: 'TIME', about: 'timeout (default: 30s)' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const nodeLogging = { ...logging, server: serviceFlags.server } as const satisfies Readonly<Record<string, Flag>>

/** Of commands that read a file which another user may have made. */
const trusting = {
  trust: { about: 'let the file run programs and open files on this computer, without asking' },
} as const

/** The flags of `patchbay import`. */
export const importing = {
  to: {
    value: 'FILE',
    about: 'lab file to write, or - for standard output (default: NAME.lab.yaml next to FILE)',
    complete: 'file',
  },
  force: { about: 'overwrite an existing lab file' },
  name: { value: 'NAME', about: 'name of the lab (archive) or template (appliance)' },
  version: { value: 'VERSION', about: 'version of an appliance (default: the first one)' },
  ...trusting,
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

/** Of commands that read a lab file. */
export const labFileFlags = {
  name: { value: 'NAME', about: 'name of the lab (default: the name in the file)' },
  var: { value: 'NAME=VALUE', about: 'set a variable of the file', many: true },
  'allow-outside': { about: 'let the file name files outside its directory' },
} as const satisfies Readonly<Record<string, Flag>>

export const validating = { ...labFileFlags, ...serviceFlags } as const satisfies Readonly<Record<string, Flag>>

const options = {
  restart: { about: 'restart running nodes where a change needs it' },
  recreate: { about: 'recreate nodes where a change needs it; their disks are lost' },
  'delete-extra': { about: 'delete nodes that are no longer in the file, and links of others that are in the way' },
  'config-from-file': { about: 'if a configuration changed in the lab and in the file, use the one in the file' },
  'take-over': { about: 'use an existing lab of another user, or one that was not created from a lab file' },
} as const

export const applying = {
  ...labFileFlags,
  ...options,
  partial: { about: 'if nodes cannot run, create them as placeholders, and start the others' },
  'dry-run': { about: 'show the steps, and run none' },
  'exit-code': { about: 'with --dry-run: exit with 2 if the lab differs, even if all steps need a flag' },
  ...trusting,
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const upFlags = {
  ...applying,
  'no-pull': { about: 'do not fetch missing images of containers from their registries' },
  ttl: { value: 'TIME', about: 'stop the lab after this time, such as 2h; 0: never' },
} as const satisfies Readonly<Record<string, Flag>>

export const testFlags = {
  ...labFileFlags,
  running: { about: 'check the existing lab as it is; create and delete no lab' },
  keep: { about: 'keep the lab running afterwards' },
  tasks: { about: 'print which tasks are done, and the score' },
  list: { about: 'list the checks with their files and lines; run nothing' },
  only: { value: 'NAME', about: 'run only the check with this name', many: true },
  junit: { value: 'FILE', about: 'write the results as JUnit XML, for CI', complete: 'file' },
  artifacts: {
    value: 'DIRECTORY',
    about: 'of each lab that fails, keep a capture of its links, consoles and events',
    complete: 'file',
  },
  'no-pull': upFlags['no-pull'],
  jobs: { value: 'NUMBER', about: 'number of labs at once (default: 1)' },
  ...trusting,
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const diffing = {
  ...labFileFlags,
  ...options,
  'exit-code': { about: 'exit with 2 if the lab differs' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

/** Of commands that ask before they destroy something. */
export const confirming = {
  yes: { short: 'y', about: 'do not ask for confirmation' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const exporting = {
  format: {
    value: 'FORMAT',
    about: 'lab file, archive with disks and files, or topology of containers (default: by the name of FILE)',
    choices: ['lab', 'gns3project', 'containerlab'],
  },
  images: { about: 'include the images of nodes (archives only)' },
  snapshots: { about: 'include the snapshots (archives only)' },
  force: { about: 'overwrite an existing file' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const schemaFlags = {
  of: {
    value: 'WHAT',
    about: 'of lab files (lab, the default), or of the output of "up --json" or "test --json"',
    choices: ['lab', 'up', 'test'],
  },
  ...outputFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const inventoryFlags = {
  format: {
    value: 'FORMAT',
    about: 'what reads it: a program, OpenSSH (ssh), or /etc/hosts (hosts) (default: ansible)',
    choices: inventoryFormats,
  },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const imagePushing = {
  kind: { value: 'KIND', about: 'kind of node that uses the image (default: detected)' },
  name: { value: 'NAME', about: 'name on the service (default: the name of FILE)' },
  force: { about: 'replace an image of this name with different content' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const imagePulling = {
  force: { about: 'replace an image of this name with different content' },
  insecure: { about: 'the registry has no certificate, or one that is not known here' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const templateAdding = {
  name: { value: 'NAME', about: 'name of the node type (default: suggested by the image)' },
  kind: { value: 'KIND', about: 'kind of its nodes (default: detected)' },
  set: { value: 'KEY=VALUE', many: true, about: 'a setting of its nodes, such as ram=1024' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const imageChoosing = {
  kind: { value: 'KIND', about: 'only images of this kind of node' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const computeAdding = {
  name: { value: 'NAME', about: 'name of the compute (default: its address)' },
  id: { value: 'ID', about: 'id of the compute (default: a new one)' },
  label: { value: 'LABEL', many: true, about: 'label for placement, such as site=berlin' },
  user: { value: 'USER', about: 'user name on the compute; the password is typed, or read from standard input' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const draining = {
  undo: { about: 'allow new labs on the compute again; moved labs stay where they are' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

const limiting = {
  nodes: { value: 'NUMBER', about: 'maximum number of nodes in each lab' },
  running: { value: 'NUMBER', about: 'maximum number of nodes of each lab that run' },
  ram: { value: 'MB', about: 'maximum memory of the nodes of each lab that run, MB' },
  expires: { value: 'TIME', about: 'lifetime, such as 8h or 30d (default: unlimited)' },
} as const satisfies Readonly<Record<string, Flag>>

export const classLinking = {
  role: {
    value: 'ROLE',
    about: 'read: look at the lab; operate (default): change it and run it',
    choices: ['read', 'operate'],
  },
  ...limiting,
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const classCreating = {
  lab: { value: 'LAB', about: 'the lab of which each student gets a copy; its nodes must be stopped', complete: 'lab' },
  students: {
    value: 'FILE',
    about: 'file with the names of students, a line each, or - for standard input',
    complete: 'file',
  },
  ...classLinking,
} as const satisfies Readonly<Record<string, Flag>>

export const tokenCreating = {
  role: {
    value: 'ROLE',
    about: 'read: view; operate (default): run labs; admin: also manage computes and tokens',
    choices: ['read', 'operate', 'admin'],
  },
  lab: {
    value: 'LAB',
    about: 'limit the token to this lab, by name, id, or prefix such as "class-*"',
    many: true,
    complete: 'lab',
  },
  ...limiting,
  join: { about: 'create a token for a compute that joins, not for a client' },
  compute: { value: 'ID', about: 'with --join: the only compute that can use it', complete: 'compute' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const organizationCreating = {
  name: { value: 'NAME', about: 'display name (default: the id)' },
  'max-projects': { value: 'NUMBER', about: 'maximum number of projects; 0: no limit' },
  'max-computes': { value: 'NUMBER', about: 'maximum number of computes, up to 1,000; 0: no limit of its own' },
  'requests-per-s': { value: 'NUMBER', about: 'maximum requests per second, all tokens together; 0: no limit' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const organizationRemoving = {
  force: { about: 'delete even if it still has projects or computes; running nodes are not stopped' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const saving = {
  ...labFileFlags,
  configs: { about: 'also save configurations: in the lab file, in the files that it names, or as configs/NODE.cfg' },
  all: { about: 'also add new nodes and links to the file, and remove deleted ones' },
  check: { about: 'write nothing; exit with 2 if there is something to save' },
  ...serviceFlags,
} as const satisfies Readonly<Record<string, Flag>>

export const downFlags = {
  name: labFileFlags.name,
  delete: { about: 'delete the lab with its disks and configurations' },
  ...confirming,
} as const satisfies Readonly<Record<string, Flag>>

export const capturing = {
  write: { value: 'FILE', short: 'w', about: 'write pcap to a file, or - for standard output', complete: 'file' },
  rotate: { value: 'SIZE/FILES', about: 'begin a new file at this size, and keep the last ones, such as 100MB/10' },
  count: { value: 'NUMBER', short: 'c', about: 'stop after this many frames' },
  filter: { value: 'EXPRESSION', about: 'only frames that match a tcpdump expression (needs libpcap on this machine)' },
  'link-type': { value: 'TYPE', about: 'protocol of a serial link (default: hdlc)', choices: ['hdlc', 'ppp'] },
  ...serviceFlags,
  json: { about: 'print one JSON object per line' },
} as const satisfies Readonly<Record<string, Flag>>
