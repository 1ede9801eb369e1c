import { asking, type Flag, logging } from './command.ts'

// Flags of commands in the table; the modules of the commands know their types by them.

/** Of `link`: the keys of an impairment of lab files, and what else changes a link. */
export const linking = {
  delay: { value: 'TIME', about: 'delay frames, such as 20ms' },
  jitter: { value: 'TIME', about: 'by how much the delay varies, such as 5ms; with --delay' },
  loss: { value: 'SHARE', about: 'drop frames at random, such as 0.5%' },
  rate: { value: 'RATE', about: 'limit the rate of frames, such as 10mbit' },
  burst: { value: 'SIZE', about: 'how much may pass at once above the rate, such as 16kb; with --rate' },
  'longest-wait': { value: 'TIME', about: 'drop frames that wait longer for the rate; with --rate' },
  corrupt: { value: 'SHARE', about: 'change a byte in frames at random, such as 0.5%' },
  duplicate: { value: 'SHARE', about: 'send frames twice at random, such as 0.5%' },
  reorder: { value: 'SHARE', about: 'hold frames back at random, so that later ones overtake them' },
  held: { value: 'TIME', about: 'how long such frames are held back; with --reorder' },
  'drop-every': { value: 'N', about: 'drop every n-th frame; -1: all' },
  bpf: { value: 'EXPRESSION', about: 'drop frames that match a tcpdump expression' },
  'bpf-link-type': { value: 'TYPE', about: 'link type of --bpf, such as DLT_PPP_SERIAL' },
  there: { about: 'only from the first end to the second' },
  back: { about: 'only from the second end to the first' },
  clear: { about: 'remove all other impairment' },
  suspend: { about: 'drop all frames, as a pulled cable does' },
  resume: { about: 'let frames pass again' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const consoling = {
  escape: { value: 'CHARACTER', about: 'leaves the console; default ^] (Ctrl-]); none: only its end does' },
  log: { value: 'FILE', about: 'append the output to a file, too', complete: 'file' },
  telnet: { about: 'by telnet to the compute, in place of a websocket to the service' },
  server: asking.server,
} as const satisfies Readonly<Record<string, Flag>>

export const executing = {
  expect: { value: 'REGEX', about: 'wait until the output matches; without it until the node is silent for 1.5 s' },
  'no-echo': { about: 'with --expect: the node does not show what is typed, as at the prompt for a password' },
  within: { value: 'TIME', about: 'longest wait; default 30s' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const nodeLogging = { ...logging, server: asking.server } as const satisfies Readonly<Record<string, Flag>>

/** Of commands that read a file which another user may have made. */
const trusting = {
  trust: { about: 'let the file run programs and open files of this computer, without a question' },
} as const

/** The flags of `patchbay import`. */
export const importing = {
  to: { value: 'FILE', about: 'the lab file; - prints it. Default: beside FILE, as NAME.lab.yaml', complete: 'file' },
  force: { about: 'replace a lab file that is there' },
  name: { value: 'NAME', about: 'of an archive or an appliance: the name of the lab or the template' },
  version: { value: 'VERSION', about: 'of an appliance: one of its versions; default: the first one' },
  ...trusting,
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

/** Of commands that read a lab file. */
export const labFiling = {
  name: { value: 'NAME', about: 'name of the lab, in place of that in the file' },
  var: { value: 'NAME=VALUE', about: 'value of a variable of the file', many: true },
  'allow-outside': { about: 'let the file name files that are not in its directory' },
} as const satisfies Readonly<Record<string, Flag>>

export const validating = { ...labFiling, ...asking } as const satisfies Readonly<Record<string, Flag>>

const options = {
  restart: { about: 'restart running nodes for changes that need it' },
  recreate: { about: 'recreate nodes for changes that need it; their disks are lost' },
  'delete-extra': { about: 'delete nodes that have left the file, and links of others in the way' },
  'config-from-file': { about: 'a configuration that was changed in both places is taken from the file' },
  'take-over': { about: 'use a lab of this name that another user made, or that was not made from a lab file' },
} as const

export const applying = {
  ...labFiling,
  ...options,
  'dry-run': { about: 'show what would be done, and do nothing' },
  'exit-code': { about: 'with --dry-run: exit code 2 when the lab differs, also when all steps need a flag' },
  ...trusting,
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const upping = {
  ...applying,
  ttl: { value: 'TIME', about: 'let the service stop the lab after this time, such as 2h; 0: never' },
} as const satisfies Readonly<Record<string, Flag>>

export const testing = {
  ...labFiling,
  running: { about: 'check the existing lab as it is; make and delete no lab' },
  keep: { about: 'let the lab run on afterwards' },
  junit: { value: 'FILE', about: 'write the results as JUnit XML, for CI', complete: 'file' },
  jobs: { value: 'NUMBER', about: 'how many labs at once; default 1' },
  ...trusting,
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const diffing = {
  ...labFiling,
  ...options,
  'exit-code': { about: 'exit code 2 when there is a difference' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

/** Of commands that ask before they destroy something. */
export const confirming = {
  yes: { short: 'y', about: 'do not ask' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const exporting = {
  format: {
    value: 'FORMAT',
    about: 'a lab file, or an archive with disks and files; default: by the name of FILE',
    choices: ['lab', 'gns3project'],
  },
  images: { about: 'of an archive: with the images of its nodes' },
  snapshots: { about: 'of an archive: with the snapshots' },
  force: { about: 'replace a file that is there' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const imagePushing = {
  kind: { value: 'KIND', about: 'the kind of node that it is for; default: by its content' },
  name: { value: 'NAME', about: 'its name on the service; default: that of FILE' },
  force: { about: 'replace an image of this name that has other content' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const imageChoosing = {
  kind: { value: 'KIND', about: 'only images of this kind of node' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const computeAdding = {
  name: { value: 'NAME', about: 'its name; default: its address' },
  id: { value: 'ID', about: 'its id; default: a new one' },
  label: { value: 'LABEL', many: true, about: 'a label for the placement of nodes, such as site=berlin' },
  user: { value: 'USER', about: 'the user there; the password is asked for, or read from standard input' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const draining = {
  undo: { about: 'let the compute take new labs again; what was moved stays where it is now' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const tokenCreating = {
  role: {
    value: 'ROLE',
    about: 'read: view; operate (default): run labs; admin: also computes and tokens',
    choices: ['read', 'operate', 'admin'],
  },
  lab: { value: 'LAB', about: 'only for this lab, its id, or a prefix such as "class-*"', many: true, complete: 'lab' },
  expires: { value: 'TIME', about: 'how long it is valid, such as 8h or 30d; default: without end' },
  join: { about: 'a token with which a compute joins the fleet, in place of one for a client' },
  compute: { value: 'ID', about: 'with --join: the only compute that may use it', complete: 'compute' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const organizationCreating = {
  name: { value: 'NAME', about: 'its name for people; default: its id' },
  'max-projects': { value: 'NUMBER', about: 'most projects; 0: no limit' },
  'max-computes': { value: 'NUMBER', about: 'most computes, up to 1,000; 0: no limit of its own' },
  'requests-per-s': { value: 'NUMBER', about: 'most requests per second of all its tokens together; 0: no limit' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const organizationRemoving = {
  force: { about: 'also one that has projects and computes: both are forgotten, and their nodes keep running' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const saving = {
  ...labFiling,
  configs: { about: 'save configurations, too: in the file, in the files that it names, or as configs/NODE.cfg' },
  all: { about: 'add the nodes and links that the file lacks, and remove those that the lab no longer has' },
  check: { about: 'write nothing; exit code 2 when there is something to save' },
  ...asking,
} as const satisfies Readonly<Record<string, Flag>>

export const downing = {
  name: labFiling.name,
  delete: { about: 'delete the lab with its disks and configurations' },
  ...confirming,
} as const satisfies Readonly<Record<string, Flag>>

export const capturing = {
  write: { value: 'FILE', short: 'w', about: 'write pcap into a file; -: to standard output', complete: 'file' },
  count: { value: 'NUMBER', short: 'c', about: 'end after this number of frames' },
  filter: { value: 'EXPRESSION', about: 'only frames that a tcpdump expression matches (needs libpcap here)' },
  'link-type': { value: 'TYPE', about: 'what a serial line carries; default hdlc', choices: ['hdlc', 'ppp'] },
  ...asking,
  json: { about: 'print one JSON object per line' },
} as const satisfies Readonly<Record<string, Flag>>
