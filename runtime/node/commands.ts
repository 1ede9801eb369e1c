import { asking, type Command, command, logging, showing } from './cli/command.ts'
import {
  applying,
  capturing,
  computeAdding,
  confirming,
  consoling,
  diffing,
  downing,
  draining,
  executing,
  exporting,
  imageChoosing,
  imagePushing,
  importing,
  linking,
  nodeLogging,
  organizationCreating,
  organizationRemoving,
  saving,
  testing,
  tokenCreating,
  upping,
  validating,
} from './cli/command-flags.ts'

const labFile = {
  name: 'FILE',
  about: 'a lab file, or - for standard input; default: the *.lab.yaml of the working directory',
  optional: true,
  complete: 'file',
} as const

/** Also in one word: LAB/SNAPSHOT. */
const snapshotArgs = [
  { name: 'LAB', about: 'a lab, or LAB/SNAPSHOT', complete: 'snapshot' },
  { name: 'SNAPSHOT', about: 'one of its snapshots', optional: true, complete: 'snapshot' },
] as const

/** Every command of the program, in the order in which help lists them. A name may have two words. */
export const commands: Readonly<Record<string, Command>> = {
  up: command({
    group: 'labs',
    summary: 'make a lab of its file, start it, and wait until it is ready',
    text: `Makes a lab what its file says, starts its nodes in order, and waits until they are ready. When the lab is there
already, only what differs is done; what would disturb a running node needs a flag. Without a service of this user the
command starts one, which keeps running. "patchbay down" stops the lab; with --ttl the service does so by itself.`,
    args: [labFile],
    flags: upping,
    run: async (input) => (await import('./cli/topology.ts')).up(input),
  }),
  down: command({
    group: 'labs',
    summary: 'stop a lab, or delete it',
    text: `Stops the nodes of a lab; disks and configurations stay. With --delete the lab is deleted. The service keeps running.`,
    args: [{ name: 'FILE|LAB', about: 'a lab, or its file', optional: true, complete: 'lab' }],
    flags: downing,
    run: async (input) => (await import('./cli/topology.ts')).down(input),
  }),
  apply: command({
    group: 'labs',
    summary: 'make a lab what its file says; start nothing',
    text: `Makes a lab what its file says, by the steps that "patchbay diff" shows: all of them, or none. Steps that restart a
running node or lose a disk are not taken without their flags; the exit code is 4 then.`,
    args: [labFile],
    flags: applying,
    run: async (input) => (await import('./cli/topology.ts')).apply(input),
  }),
  diff: command({
    group: 'labs',
    summary: 'what differs between a lab and its file',
    text: 'Shows the steps that "patchbay apply" would take.',
    args: [labFile],
    flags: diffing,
    run: async (input) => (await import('./cli/topology.ts')).diff(input),
  }),
  save: command({
    group: 'labs',
    summary: 'write the changes of a lab back into its file',
    text: `Writes what was changed in a lab into its file: names, places, labels, settings and computes of nodes, names and
impairment of links; with --configs configurations, too. Comments, order and spelling of the file stay. What comes
from a template is written at its node. What is not saved is listed, and the exit code is 4 then; otherwise
"patchbay diff" is empty.`,
    args: [{ name: 'FILE|LAB', about: 'a lab file, or the lab of a file here', optional: true, complete: 'lab' }],
    flags: saving,
    run: async (input) => (await import('./cli/save.ts')).save(input),
  }),
  validate: command({
    group: 'labs',
    summary: 'check a lab file; change nothing',
    text: `Checks a lab file, and the files that it names. All that is wrong is shown with line and column; the exit code is 3 then.
A service that --server names, or that runs here, is asked whether its computes have the images.`,
    args: [labFile],
    flags: validating,
    run: async (input) => (await import('./cli/topology.ts')).validate(input),
  }),
  test: command({
    group: 'labs',
    summary: 'make labs, run the checks of their files, and delete the labs',
    text: `Makes the lab of each file under a name of its own, starts it, waits until it is ready, runs the checks of the file,
and deletes the lab, also after Ctrl-C. A lab of the same name that runs is left alone; --running checks it as
it is instead. The exit code is 1 when a lab does not start or a check fails: patchbay test labs/*.lab.yaml --junit out.xml`,
    args: [{ ...labFile, many: true }],
    flags: testing,
    run: async (input) => (await import('./cli/lab-test.ts')).test(input),
  }),
  ls: command({
    group: 'labs',
    summary: 'list the labs',
    text: 'Lists the labs of the service, with the number of their nodes and of those that run.',
    flags: asking,
    run: async (input) => (await import('./cli/ls.ts')).ls(input),
  }),
  import: command({
    group: 'files',
    summary: 'a lab of containerlab, GNS3 or CML as a lab file',
    text: `Makes a lab file of a topology of containerlab (*.clab.yml), a project of GNS3 (*.gns3) or a lab of CML (*.yaml), beside
it, and lists all that the lab file does not have of it. An archive (*.gns3project) becomes a closed lab of the
service, an appliance (*.gns3a) a template.`,
    args: [{ name: 'FILE', about: 'the file; - reads standard input', complete: 'file' }],
    flags: importing,
    run: async (input) => (await import('./cli/import.ts')).importCommand(input),
  }),
  export: command({
    group: 'files',
    summary: 'a lab as a lab file, or as an archive with its disks',
    text: `Writes a lab as a lab file (LAB.lab.yaml), or as an archive (*.gns3project) with disks and files, for which its nodes
must be stopped. What a lab file does not have is listed.`,
    args: [
      { name: 'LAB', about: 'a lab', complete: 'lab' },
      { name: 'FILE', about: 'the file; - is standard output', optional: true, complete: 'file' },
    ],
    flags: exporting,
    run: async (input) => (await import('./cli/export.ts')).exportCommand(input),
  }),
  schema: command({
    group: 'files',
    summary: 'the JSON Schema of lab files, for editors',
    text: `Prints the JSON Schema of lab files. Editors check and complete a file whose first line names it:
# yaml-language-server: $schema=lab-1.json`,
    flags: showing,
    run: async (input) => (await import('./cli/schema.ts')).schema(input),
  }),
  'snapshot ls': command({
    group: 'labs',
    summary: 'list the snapshots of a lab',
    text: 'Lists the snapshots of a lab, with the number of nodes that ran.',
    args: [{ name: 'LAB', about: 'a lab', complete: 'lab' }],
    flags: asking,
    run: async (input) => (await import('./cli/snapshots.ts')).snapshotLs(input),
  }),
  'snapshot create': command({
    group: 'labs',
    summary: 'take a snapshot of a lab',
    text: `Takes a snapshot of a lab: nodes, links, disks, configurations, and the memory of running machines. Running nodes
keep running. Without NAME the time is its name. LAB/NAME is the same as LAB NAME.`,
    args: [
      { name: 'LAB', about: 'a lab', complete: 'lab' },
      { name: 'NAME', about: 'name of the snapshot', optional: true },
    ],
    flags: asking,
    run: async (input) => (await import('./cli/snapshots.ts')).snapshotCreate(input),
  }),
  'snapshot restore': command({
    group: 'labs',
    summary: 'make a lab what it was when a snapshot was taken',
    text: `Stops the nodes of a lab, makes it what it was when the snapshot was taken, and starts the nodes that ran then.
Changes since then are lost, so the command asks; --yes answers the question. LAB/SNAPSHOT is the same as LAB SNAPSHOT.`,
    args: snapshotArgs,
    flags: confirming,
    run: async (input) => (await import('./cli/snapshots.ts')).snapshotRestore(input),
  }),
  'snapshot rm': command({
    group: 'labs',
    summary: 'delete snapshots',
    text: 'Deletes snapshots; LAB/SNAPSHOT is the same as LAB SNAPSHOT. The lab stays as it is.',
    args: [snapshotArgs[0], { ...snapshotArgs[1], many: true }],
    flags: asking,
    run: async (input) => (await import('./cli/snapshots.ts')).snapshotRm(input),
  }),
  inspect: command({
    group: 'labs',
    summary: 'the nodes and links of a lab, or one node',
    text: 'Shows the nodes of a lab with their consoles, and its links with their impairment; or all about one node.',
    args: [{ name: 'LAB[/NODE]', about: 'a lab, or one of its nodes', complete: 'node' }],
    flags: asking,
    run: async (input) => (await import('./cli/inspect.ts')).inspect(input),
  }),
  watch: command({
    group: 'labs',
    summary: 'a table of the nodes and links of a lab that stays current',
    text: `Shows states and traffic of a lab until Ctrl-C. Without a terminal it prints a line for each change, with --json
one object per line.`,
    args: [{ name: 'LAB', about: 'a lab', complete: 'lab' }],
    flags: asking,
    run: async (input) => (await import('./cli/watch.ts')).watch(input),
  }),
  start: command({
    group: 'nodes',
    summary: 'start labs or nodes, in order, and wait until they are ready',
    text: `Starts all nodes of a lab, or single nodes, in the order of "after" and as the load of the computes allows, and
waits until they are ready. A closed lab is opened.`,
    args: [{ name: 'LAB[/NODE]', about: 'a lab, or one of its nodes', many: true, complete: 'node' }],
    flags: asking,
    run: async (input) => (await import('./cli/run-nodes.ts')).runNodes('start', input),
  }),
  stop: command({
    group: 'nodes',
    summary: 'stop labs or nodes; disks and configurations stay',
    text: 'Stops all nodes of a lab, or single nodes.',
    args: [{ name: 'LAB[/NODE]', about: 'a lab, or one of its nodes', many: true, complete: 'node' }],
    flags: asking,
    run: async (input) => (await import('./cli/run-nodes.ts')).runNodes('stop', input),
  }),
  console: command({
    group: 'nodes',
    summary: 'a terminal on the console of a node; Ctrl-] leaves it',
    text: `A terminal on the console of a node, also through a gateway; Ctrl-] leaves it. With [HOST:]PORT it is a telnet
client for the member "console" of a node. With input from a pipe the command sends the input, and shows the
output of the guest until the guest is quiet: echo "show ip" | patchbay console wan-edge/PC1`,
    args: [{ name: 'LAB/NODE', about: 'a node, or [HOST:]PORT', complete: 'node' }],
    flags: consoling,
    run: async (input) => (await import('./cli/console.ts')).consoleCommand(input),
  }),
  exec: command({
    group: 'nodes',
    summary: 'type a line on the console of a node, and show the answer',
    text: `Types a line on the console of a node, and shows what comes back. With --expect the command waits until what the
node answers matches; the line itself, which the node shows as it is typed, is no answer. The exit code is 1 when
nothing matches in time: patchbay exec wan-edge/PC1 "ping 10.0.0.2" --expect "bytes from". Without quotes several words
are one line, and those with one "-" belong to it: patchbay exec wan-edge/PC1 ping 10.0.0.2 -c 2. After "--" all words do.`,
    args: [
      { name: 'LAB/NODE', about: 'a node', complete: 'node' },
      { name: 'COMMAND', about: 'the line, in one word or several', many: true, ofNode: true },
    ],
    flags: executing,
    run: async (input) => (await import('./cli/node-output.ts')).exec(input),
  }),
  logs: command({
    group: 'nodes',
    summary: 'the last lines of the console of a node',
    text: 'Shows the last lines of the console of a node, as far as its scroll-back goes (64 KiB).',
    args: [{ name: 'LAB/NODE', about: 'a node', complete: 'node' }],
    flags: nodeLogging,
    run: async (input) => (await import('./cli/node-output.ts')).logs(input),
  }),
  link: command({
    group: 'links',
    summary: 'show, impair, suspend or resume a link',
    text: `Shows a link: whether frames pass, what impairs it, and its traffic. With flags it changes the link while it runs;
what is not named stays, and 0 removes it: patchbay link wan-edge/R1:eth0 --delay 40ms --loss 0.5%`,
    args: [{ name: 'LAB/LINK', about: 'a link: NODE:PORT, NODE--NODE or its name', complete: 'link' }],
    flags: linking,
    run: async (input) => (await import('./cli/link.ts')).link(input),
  }),
  capture: command({
    group: 'links',
    summary: 'show the frames of a link, or write them as pcap',
    text: `Shows the frames of a link as they pass, a line each, until Ctrl-C: seconds since the first one, source,
destination, protocol, and what the frame says. Rows that a terminal is too slow for are left out and counted.
With -w the frames go into a file, with -w - to a pipe: patchbay capture wan-edge/R1:eth0 -w - | wireshark -k -i -
Captures by others go on beside it, and nothing is left on the service. The exit code is 130 after Ctrl-C.`,
    args: [{ name: 'LAB/LINK', about: 'a link: NODE:PORT, NODE--NODE or its name', complete: 'link' }],
    flags: capturing,
    run: async (input) => (await import('./cli/capture.ts')).capture(input),
  }),
  'images ls': command({
    group: 'files',
    summary: 'list the images of nodes',
    text: 'Lists the images that nodes can start from. The digests of new images are computed first.',
    flags: asking,
    run: async (input) => (await import('./cli/images.ts')).imagesLs(input),
  }),
  'images push': command({
    group: 'files',
    summary: 'copy images to the service; an interrupted push is continued',
    text: `Sends images to the service, which checks their digests. The same command continues
an interrupted push. An image that the service has already is not sent.`,
    args: [{ name: 'FILE', about: 'an image', many: true, complete: 'file' }],
    flags: imagePushing,
    run: async (input) => (await import('./cli/images.ts')).imagesPush(input),
  }),
  'images rename': command({
    group: 'files',
    summary: 'give an image another name',
    text: `Gives an image another name; it stays in its directory, and replaces no other image. One that a node of an open lab needs
keeps its name, and the message names the node. Nodes of closed labs, lab files and templates go on naming the old one.`,
    args: [
      { name: 'OLD', about: 'the name of an image', complete: 'image' },
      { name: 'NEW', about: 'its new name, with the directory that it is in, if it is in one' },
    ],
    flags: imageChoosing,
    run: async (input) => (await import('./cli/images.ts')).imagesRename(input),
  }),
  'images rm': command({
    group: 'files',
    summary: 'delete images',
    text: 'Deletes images. One that a node of an open lab needs stays, and the message names the node.',
    args: [{ name: 'IMAGE', about: 'the name of an image', many: true, complete: 'image' }],
    flags: imageChoosing,
    run: async (input) => (await import('./cli/images.ts')).imagesRm(input),
  }),
  serve: command({
    group: 'service',
    summary: 'run the service in the foreground (reference at /docs)',
    text: `Runs the service until Ctrl-C or SIGTERM, which stop the nodes (unless on_exit is keep). When it is ready it
prints its address on standard output. The log goes to standard error: as JSON, or as text on a terminal.`,
    settings: 'list',
    run: async ({ argv }) => {
      const { loadConfig } = await import('./config/load.ts')
      return (await import('./serve.ts')).serve(loadConfig({ argv, env: process.env }))
    },
  }),
  'service status': command({
    group: 'service',
    summary: 'the service of this user: where it is, and what runs on it',
    text: 'Shows whether the service of this user runs, and where. The exit code is 5 when it does not.',
    flags: showing,
    run: async (input) => (await import('./cli/service.ts')).serviceStatus(input),
  }),
  'service start': command({
    group: 'service',
    summary: 'start the service of this user in the background',
    text: `Starts the service of this user, as "patchbay up" does when none runs: detached from the terminal, on
http://127.0.0.1:3080 or a free port, with the settings of "patchbay config". Its nodes keep running when it ends.`,
    flags: showing,
    run: async (input) => (await import('./cli/service.ts')).serviceStart(input),
  }),
  'service stop': command({
    group: 'service',
    summary: 'end the service of this user',
    text: `Ends the service of this user. A service that "patchbay up" has started leaves its nodes running, and the
next one takes them over; "patchbay down" stops them.`,
    flags: showing,
    run: async (input) => (await import('./cli/service.ts')).serviceStop(input),
  }),
  'service logs': command({
    group: 'service',
    summary: 'the log of the service that "patchbay up" has started',
    text: 'Shows the last lines of the log.',
    flags: logging,
    run: async (input) => (await import('./cli/service.ts')).serviceLogs(input),
  }),
  login: command({
    group: 'service',
    summary: 'use a service elsewhere, with its token, for all commands from now on',
    text: `Lets all commands ask the service at URL, with a token that is typed, or read from standard input:
patchbay login https://labs.example.org < token. The token is no argument, as other users see these ("ps"). It is
checked, then kept in a file that only this user can read; it goes to this service alone. --server, PATCHBAY_SERVER
and PATCHBAY_TOKEN win over what is kept.`,
    args: [
      { name: 'URL', about: 'the service; default: PATCHBAY_SERVER, else that of the last login', optional: true },
    ],
    flags: showing,
    run: async (input) => (await import('./cli/login.ts')).login(input),
  }),
  logout: command({
    group: 'service',
    summary: 'forget the service and the token of "patchbay login"',
    text: `Removes what "patchbay login" has kept; commands then ask the service of this user again. The token stays valid:
"patchbay tokens rm" revokes it.`,
    flags: showing,
    run: async (input) => (await import('./cli/login.ts')).logout(input),
  }),
  doctor: command({
    group: 'service',
    summary: 'check what labs need on this machine',
    text: `Checks what labs need on this machine, and shows the command that mends each finding. The exit code is 1 when
something is missing that every lab needs. It takes the flags of "patchbay serve", and checks the data directory
and the programs that they name.`,
    flags: showing,
    settings: 'named',
    run: async ({ argv }) => (await import('./cli/doctor.ts')).doctorCommand(argv),
  }),
  config: command({
    group: 'service',
    summary: 'the settings in force, and where each came from',
    text: `Shows every setting with its value and its source: a flag, an environment variable, the file or the
default. Secrets are masked. It takes the flags of "patchbay serve", and shows the settings that they give.`,
    flags: showing,
    settings: 'list',
    run: async ({ argv }) => (await import('./cli/config.ts')).configCommand(argv),
  }),
  'computes ls': command({
    group: 'fleet',
    summary: 'list the machines that run nodes',
    text: 'Lists the computes of the service, with their state, load and labels.',
    flags: asking,
    run: async (input) => (await import('./cli/computes.ts')).computesLs(input),
  }),
  'computes add': command({
    group: 'fleet',
    summary: 'let a service on another machine run nodes, too',
    text: `Registers the Patchbay at URL as a compute of the service, which connects to it. A password is asked for, or read from
standard input: patchbay computes add http://10.0.0.7:3080 --user lab < password. A machine without an address
joins by itself: "patchbay tokens create NAME --join" makes its token, "patchbay serve --join" uses it.`,
    args: [{ name: 'URL', about: 'the address of the compute' }],
    flags: computeAdding,
    run: async (input) => (await import('./cli/computes.ts')).computesAdd(input),
  }),
  'computes drain': command({
    group: 'fleet',
    summary: 'empty a machine: its stopped labs move to others',
    text: `Lets the compute take no new labs, and moves its stopped labs to the other computes, with their files and snapshots.
A lab that is open is closed for its move, and opened again. Labs with running nodes stay, and are listed with the
exit code 4: stop them, and drain again. Ctrl-C ends it; what was moved stays moved. With --undo the compute takes
new labs again.`,
    args: [{ name: 'COMPUTE', about: 'the name or id of a compute', complete: 'compute' }],
    flags: draining,
    run: async (input) => (await import('./cli/computes.ts')).computesDrain(input),
  }),
  'computes label': command({
    group: 'fleet',
    summary: 'give a machine labels, by which labs choose where their nodes run',
    text: `Gives a compute these labels in place of those that it was given before, such as site=berlin; without any it keeps
only those that it finds itself (kvm, arch, platform). A lab asks for them by "placement".`,
    args: [
      { name: 'COMPUTE', about: 'the name or id of a compute', complete: 'compute' },
      { name: 'LABEL', about: 'a word, or a word with a value', many: true, optional: true },
    ],
    flags: asking,
    run: async (input) => (await import('./cli/computes.ts')).computesLabel(input),
  }),
  'computes rm': command({
    group: 'fleet',
    summary: 'remove machines from the fleet; their nodes keep running',
    text: 'Removes computes from the fleet. Their nodes keep running, and are there again when the compute is added again.',
    args: [{ name: 'COMPUTE', about: 'the name or id of a compute', many: true, complete: 'compute' }],
    flags: asking,
    run: async (input) => (await import('./cli/computes.ts')).computesRm(input),
  }),
  'tokens ls': command({
    group: 'fleet',
    summary: 'list the tokens, without their secrets',
    text: 'Lists the tokens of the service with their rights. Only administrators may.',
    flags: asking,
    run: async (input) => (await import('./cli/tokens.ts')).tokensLs(input),
  }),
  'tokens create': command({
    group: 'fleet',
    summary: 'make a token for a client, or for a compute that joins',
    text: `Makes a token and prints it; it is not shown again. Standard output has the token alone:
patchbay tokens create ci --role operate > token. Its user gives it to "patchbay login".`,
    args: [{ name: 'NAME', about: 'whom it is for' }],
    flags: tokenCreating,
    run: async (input) => (await import('./cli/tokens.ts')).tokensCreate(input),
  }),
  'tokens rm': command({
    group: 'fleet',
    summary: 'revoke tokens',
    text: 'Revokes tokens: requests with them are refused from then on.',
    args: [{ name: 'TOKEN', about: 'the name or id of a token', many: true, complete: 'token' }],
    flags: asking,
    run: async (input) => (await import('./cli/tokens.ts')).tokensRm(input),
  }),
  'organizations ls': command({
    group: 'fleet',
    summary: 'list the organizations that share a gateway',
    text: `Lists the organizations of a gateway, with their limits. Only the administrator of the deployment may, with the
credentials of its configuration; the variable PATCHBAY_ORGANIZATION says in which one all commands act.`,
    flags: asking,
    run: async (input) => (await import('./cli/organizations.ts')).organizationsLs(input),
  }),
  'organizations create': command({
    group: 'fleet',
    summary: 'make an organization, with computes, labs and tokens of its own',
    text: `Makes an organization, which sees nothing of others. Its first token is made by
PATCHBAY_ORGANIZATION=ID patchbay tokens create NAME --role admin.`,
    args: [{ name: 'ID', about: 'lower-case letters, digits and "-"' }],
    flags: organizationCreating,
    run: async (input) => (await import('./cli/organizations.ts')).organizationsCreate(input),
  }),
  'organizations set': command({
    group: 'fleet',
    summary: 'change the name or the limits of an organization',
    text: 'Changes the name or limits that are given. A limit below the present number deletes nothing.',
    args: [{ name: 'ID', about: 'the organization', complete: 'organization' }],
    flags: organizationCreating,
    run: async (input) => (await import('./cli/organizations.ts')).organizationsSet(input),
  }),
  'organizations rm': command({
    group: 'fleet',
    summary: 'delete organizations, and revoke their tokens',
    text: 'Deletes organizations without projects and computes; with --force also others.',
    args: [{ name: 'ID', about: 'the organization', many: true, complete: 'organization' }],
    flags: organizationRemoving,
    run: async (input) => (await import('./cli/organizations.ts')).organizationsRm(input),
  }),
  version: command({
    group: 'program',
    summary: 'the version of the program, and of a service',
    text: 'Shows the version of the program, and with --server or PATCHBAY_SERVER that of the service there.',
    flags: asking,
    run: async (input) => (await import('./cli/version.ts')).versionCommand(input),
  }),
  completion: command({
    group: 'program',
    summary: 'the completion of commands and names for a shell',
    text: `Prints a script for a shell, which then completes commands, flags, files, and the names of labs, nodes and links of the
service. In bash: source <(patchbay completion bash)
A service that has not answered within 1 s offers no names; the variable PATCHBAY_COMPLETION_WAIT gives it more, such as 3s.`,
    args: [{ name: 'SHELL', about: 'the shell', choices: ['bash', 'zsh', 'fish'] }],
    flags: showing,
    run: async ({ args: [shell = ''] }) => (await import('./cli/completion.ts')).completion(shell),
  }),
  complete: command({
    group: 'program',
    hidden: true,
    summary: 'what may stand in the place of the last word',
    text: 'Prints what a shell may offer for the last word, one per line. The scripts of "patchbay completion" ask it.',
    args: [{ name: 'WORD', about: 'the words after patchbay', optional: true, many: true }],
    run: async ({ args }) => (await import('./cli/completion.ts')).complete(args, commands),
  }),
  help: command({
    group: 'program',
    summary: 'the same as COMMAND --help',
    text: 'Shows the commands, or what one of them does.',
    args: [{ name: 'COMMAND', about: 'a command', optional: true, many: true, complete: 'command' }],
    flags: showing,
    run: async ({ args }) => (await import('./cli/help.ts')).help(args, commands),
  }),
}
