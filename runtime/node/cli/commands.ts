import { type Command, command, logging, outputFlags, serviceFlags } from './command.ts'
import {
  applying,
  assisting,
  capturing,
  classCreating,
  classLinking,
  computeAdding,
  confirming,
  consoling,
  diffing,
  downFlags,
  draining,
  executing,
  exporting,
  imageChoosing,
  imagePulling,
  imagePushing,
  importing,
  inventoryFlags,
  linking,
  nodeLogging,
  organizationCreating,
  organizationRemoving,
  saving,
  schemaFlags,
  templateAdding,
  testFlags,
  tokenCreating,
  upFlags,
  validating,
} from './command-flags.ts'

const labFile = {
  name: 'FILE',
  about: 'lab file, or - for standard input (default: the *.lab.yaml in the working directory)',
  optional: true,
  complete: 'file',
} as const

/** Also in one word: LAB/SNAPSHOT. */
const snapshotArgs = [
  { name: 'LAB', about: 'a lab, or LAB/SNAPSHOT', complete: 'snapshot' },
  { name: 'SNAPSHOT', about: 'a snapshot of the lab', optional: true, complete: 'snapshot' },
] as const

const theClass = { name: 'CLASS', about: 'name of the class', complete: 'class' } as const
const someStudents = {
  name: 'STUDENT',
  about: 'a student of the class (default: all)',
  optional: true,
  many: true,
} as const

/** Every command of the program, in the order in which help lists them. A name may have two words. */
export const commands: Readonly<Record<string, Command>> = {
  up: command({
    group: 'labs',
    summary: 'create or update a lab from its file, start it, and wait until it is ready',
    text: `Creates the lab of a lab file, or updates it if it exists, starts its nodes in order, and waits until they are ready.
An update changes only what differs. Changes that disturb running nodes need a flag. If your local service is used
and does not run, the command starts it in the background. "patchbay down" stops the lab; --ttl stops it after a time.
A topology of containerlab, a project of GNS3 or a lab of CML is imported first, and the command says what it changes:
patchbay up dc.clab.yml. If nodes cannot run, such as those whose image is missing, nothing is started, and the exit
code is 3. With --partial they become placeholders, the others are started, and the exit code is 7. Missing images of
containers that a registry has are fetched first, as "patchbay images pull" does; --no-pull leaves that to you.`,
    args: [labFile],
    flags: upFlags,
    run: async (input) => (await import('./topology.ts')).up(input),
  }),
  down: command({
    group: 'labs',
    summary: 'stop a lab, or delete it',
    text: 'Stops the nodes of a lab; disks and configurations are kept. --delete deletes the lab. The service keeps running.',
    args: [{ name: 'FILE|LAB', about: 'a lab, or its file', optional: true, complete: 'lab' }],
    flags: downFlags,
    run: async (input) => (await import('./topology.ts')).down(input),
  }),
  apply: command({
    group: 'labs',
    summary: 'create or update a lab from its file; start nothing',
    text: `Makes a lab match its file, with the steps that "patchbay diff" shows: either all or none. Steps that restart a running
node or lose a disk need a flag. Without it they are skipped, and the exit code is 4.`,
    args: [labFile],
    flags: applying,
    run: async (input) => (await import('./topology.ts')).apply(input),
  }),
  diff: command({
    group: 'labs',
    summary: 'show how a lab differs from its file',
    text: 'Shows the steps that "patchbay apply" would run.',
    args: [labFile],
    flags: diffing,
    run: async (input) => (await import('./topology.ts')).diff(input),
  }),
  save: command({
    group: 'labs',
    summary: 'write the changes of a lab back into its file',
    text: `Writes the changes of a lab into its file: names, positions, labels, settings and computes of nodes, names and
impairment of links, and with --configs also configurations. Comments, order and formatting of the file are kept.
Settings from a template are written to the node. What cannot be saved is listed, and the exit code is 4; otherwise
"patchbay diff" is empty afterwards.`,
    args: [{ name: 'FILE|LAB', about: 'a lab file, or a lab whose file is here', optional: true, complete: 'lab' }],
    flags: saving,
    run: async (input) => (await import('./save.ts')).save(input),
  }),
  validate: command({
    group: 'labs',
    summary: 'check a lab file; change nothing',
    text: `Checks a lab file and the files that it names. Errors are shown with line and column, and the exit code is 3. If a
service is available, the command also checks that its computes have the images.`,
    args: [labFile],
    flags: validating,
    run: async (input) => (await import('./topology.ts')).validate(input),
  }),
  test: command({
    group: 'labs',
    summary: 'run the checks of lab files, each in a temporary lab',
    text: `Creates a temporary lab from each file, starts it, waits until it is ready, runs the checks of the file, and deletes
the lab, also after Ctrl-C. A running lab of the same name is not touched; --running checks it as it is instead.
The exit code is 1 if a lab does not start or a check fails, and 6 if a file has no checks:
patchbay test labs/*.lab.yaml --junit out.xml --artifacts failed (docs/ci.md).
Of each lab that fails --artifacts keeps the plan, the nodes and links at the end, a capture of all links since before
the start (links.pcapng), the events and the consoles. In GitHub Actions failed checks become annotations and a table
in the summary of the job, and in GitLab each lab is a section of the log.`,
    args: [{ ...labFile, many: true }],
    flags: testFlags,
    run: async (input) => (await import('./lab-test.ts')).test(input),
  }),
  ls: command({
    group: 'labs',
    summary: 'list the labs',
    text: 'Lists the labs of the service with the number of their nodes and how many of them run.',
    flags: serviceFlags,
    run: async (input) => (await import('./ls.ts')).ls(input),
  }),
  import: command({
    group: 'files',
    summary: 'convert a lab of containerlab, GNS3 or CML to a lab file',
    text: `Converts a containerlab topology (*.clab.yml), a GNS3 project (*.gns3) or a CML lab (*.yaml) to a lab file next to it,
and lists what the lab file leaves out. An archive (*.gns3project) becomes a closed lab of the service, an appliance
(*.gns3a) a node type.`,
    args: [{ name: 'FILE', about: 'the file, or - for standard input', complete: 'file' }],
    flags: importing,
    run: async (input) => (await import('./import.ts')).importCommand(input),
  }),
  export: command({
    group: 'files',
    summary: 'write a lab as a lab file, as an archive with its disks, or as a topology of containerlab',
    text: `Writes a lab as a lab file (LAB.lab.yaml), as an archive (*.gns3project) with disks and files, or its containers as a
topology of containerlab (*.clab.yml) with their files beside it, in configs/NODE. For an archive the nodes must be stopped. The
command lists what a lab file or a topology leaves out.`,
    args: [
      { name: 'LAB', about: 'a lab', complete: 'lab' },
      { name: 'FILE', about: 'the file, or - for standard output', optional: true, complete: 'file' },
    ],
    flags: exporting,
    run: async (input) => (await import('./export.ts')).exportCommand(input),
  }),
  inventory: command({
    group: 'files',
    summary: 'print how programs reach the nodes of a lab: for Ansible, Nornir, pyATS, OpenSSH',
    text: `Prints the names, addresses, forwarded ports and consoles of the nodes in the form that a program reads. Addresses are
those of the management network of the lab file; from outside of it, a program reaches a node by its port 22, if the lab file
forwards that.`,
    args: [{ name: 'LAB', about: 'a lab', complete: 'lab' }],
    flags: inventoryFlags,
    run: async (input) => (await import('./inventory.ts')).inventory(input),
  }),
  schema: command({
    group: 'files',
    summary: 'print the JSON Schema of lab files, for editors, or of what a command prints',
    text: `Prints the JSON Schema of lab files, or with --of that of what "up --json" or "test --json" prints. Editors check and
complete a lab file whose first line names the schema: # yaml-language-server: $schema=lab-1.json`,
    flags: schemaFlags,
    run: async (input) => (await import('./schema.ts')).schema(input),
  }),
  'snapshot ls': command({
    group: 'labs',
    summary: 'list the snapshots of a lab',
    text: 'Lists the snapshots of a lab with the number of nodes that were running.',
    args: [{ name: 'LAB', about: 'a lab', complete: 'lab' }],
    flags: serviceFlags,
    run: async (input) => (await import('./snapshots.ts')).snapshotLs(input),
  }),
  'snapshot create': command({
    group: 'labs',
    summary: 'take a snapshot of a lab',
    text: `Takes a snapshot of a lab: nodes, links, disks, configurations, and the memory of running machines. Running nodes
keep running. NAME defaults to the current time. LAB/NAME is the same as LAB NAME.`,
    args: [
      { name: 'LAB', about: 'a lab', complete: 'lab' },
      { name: 'NAME', about: 'name of the snapshot', optional: true },
    ],
    flags: serviceFlags,
    run: async (input) => (await import('./snapshots.ts')).snapshotCreate(input),
  }),
  'snapshot restore': command({
    group: 'labs',
    summary: 'restore a lab to a snapshot',
    text: `Stops the nodes of a lab, restores the snapshot, and starts the nodes that were running when it was taken. Later
changes are lost, so the command asks first; --yes skips the question. LAB/SNAPSHOT is the same as LAB SNAPSHOT.`,
    args: snapshotArgs,
    flags: confirming,
    run: async (input) => (await import('./snapshots.ts')).snapshotRestore(input),
  }),
  'snapshot rm': command({
    group: 'labs',
    summary: 'delete snapshots',
    text: 'Deletes snapshots of a lab. LAB/SNAPSHOT is the same as LAB SNAPSHOT. The lab itself does not change.',
    args: [snapshotArgs[0], { ...snapshotArgs[1], many: true }],
    flags: serviceFlags,
    run: async (input) => (await import('./snapshots.ts')).snapshotRm(input),
  }),
  inspect: command({
    group: 'labs',
    summary: 'show the nodes and links of a lab, or one node',
    text: `Shows the nodes of a lab with their consoles and its links with their impairment. For one node it shows the state
and its reason, the console, the image, and where each port leads; with --json also all settings.`,
    args: [{ name: 'LAB[/NODE]', about: 'a lab, or one of its nodes', complete: 'node' }],
    flags: serviceFlags,
    run: async (input) => (await import('./inspect.ts')).inspect(input),
  }),
  watch: command({
    group: 'labs',
    summary: 'show a live table of the nodes and links of a lab',
    text: `Shows the states and traffic of a lab until Ctrl-C. Without a terminal it prints a line for each change, with --json
one object per line.`,
    args: [{ name: 'LAB', about: 'a lab', complete: 'lab' }],
    flags: serviceFlags,
    run: async (input) => (await import('./watch.ts')).watch(input),
  }),
  start: command({
    group: 'nodes',
    summary: 'start labs or nodes in order, and wait until they are ready',
    text: `Starts all nodes of a lab, or single nodes, in the order of "after" and as fast as the load of the computes allows,
and waits until they are ready. A closed lab is opened.`,
    args: [{ name: 'LAB[/NODE]', about: 'a lab, or one of its nodes', many: true, complete: 'node' }],
    flags: serviceFlags,
    run: async (input) => (await import('./run-nodes.ts')).runNodes('start', input),
  }),
  stop: command({
    group: 'nodes',
    summary: 'stop labs or nodes; disks and configurations are kept',
    text: 'Stops all nodes of a lab, or single nodes.',
    args: [{ name: 'LAB[/NODE]', about: 'a lab, or one of its nodes', many: true, complete: 'node' }],
    flags: serviceFlags,
    run: async (input) => (await import('./run-nodes.ts')).runNodes('stop', input),
  }),
  console: command({
    group: 'nodes',
    summary: 'open a terminal on the console of a node; Ctrl-] leaves it',
    text: `Opens a terminal on the console of a node, also through a gateway. Ctrl-] leaves it. With [HOST:]PORT it is a telnet
client for the field "console" of a node. If the input is a pipe, the command sends it and shows the output of the
guest until the guest is quiet: echo "show ip" | patchbay console wan-edge/PC1`,
    args: [{ name: 'LAB/NODE', about: 'a node, or [HOST:]PORT', complete: 'node' }],
    flags: consoling,
    run: async (input) => (await import('./console.ts')).consoleCommand(input),
  }),
  exec: command({
    group: 'nodes',
    summary: 'type a line on the console of a node, and show the output',
    text: `Types a line on the console of a node and shows the output. With --expect the command waits until the output
matches; the echo of the line does not count. The exit code is 1 if nothing matches in time:
patchbay exec wan-edge/PC1 "ping 10.0.0.2" --expect "bytes from". Several words without quotes are one line, also words
that begin with one "-": patchbay exec wan-edge/PC1 ping 10.0.0.2 -c 2. After "--" all words belong to the line.`,
    args: [
      { name: 'LAB/NODE', about: 'a node', complete: 'node' },
      { name: 'COMMAND', about: 'the line, as one or more words', many: true, ofNode: true },
    ],
    flags: executing,
    run: async (input) => (await import('./node-output.ts')).exec(input),
  }),
  logs: command({
    group: 'nodes',
    summary: 'show the last lines of the console of a node',
    text: 'Shows the last lines of the console of a node, from its scroll-back of 64 KiB.',
    args: [{ name: 'LAB/NODE', about: 'a node', complete: 'node' }],
    flags: nodeLogging,
    run: async (input) => (await import('./node-output.ts')).logs(input),
  }),
  link: command({
    group: 'links',
    summary: 'show the links of a lab; impair, suspend or resume one',
    text: `Lists the links of a lab, or shows one link: whether frames pass, its impairment and its traffic. Flags change the
link while it runs; other impairment stays, and 0 removes one: patchbay link wan-edge/R1:eth0 --delay 40ms --loss 0.5%`,
    args: [
      { name: 'LAB[/LINK]', about: 'a lab, or one of its links: NODE:PORT, NODE--NODE or its name', complete: 'link' },
    ],
    flags: linking,
    run: async (input) => (await import('./link.ts')).link(input),
  }),
  capture: command({
    group: 'links',
    summary: 'show the frames of links, or write them as pcap',
    text: `Shows the frames of a link as they pass, one per line, until Ctrl-C: seconds since the first frame, source,
destination, protocol and summary. Rows that the terminal is too slow for are dropped and counted. -w FILE writes
the frames as pcap, -w - writes them to a pipe: patchbay capture wan-edge/R1:eth0 -w - | wireshark -k -i -
Of a lab, all links are captured, and of several links those: in the order of time, and written as pcapng with an
interface for each link. Other captures are not affected, and nothing is left on the service. The exit code is 130
after Ctrl-C.`,
    args: [
      {
        ...{ name: 'LAB[/LINK]', about: 'a lab, or links of it: NODE:PORT, NODE--NODE or a name' },
        ...{ many: true, complete: 'link' },
      },
    ],
    flags: capturing,
    run: async (input) => (await import('./capture.ts')).capture(input),
  }),
  'templates ls': command({
    group: 'files',
    summary: 'list the node types (templates)',
    text: 'Lists the node types from which nodes are created: those of Patchbay, and your own with their images.',
    flags: serviceFlags,
    run: async (input) => (await import('./templates.ts')).templatesLs(input),
  }),
  'templates add': command({
    group: 'files',
    summary: 'make a node type of an image',
    text: `Makes a node type of an image: a file, which is pushed first, or an image that the service has. Kind, name and
settings are suggested by the name and the content of the image; the flags replace them:
patchbay templates add vios.qcow2 --name R --set ram=1024 --set adapters=8`,
    args: [{ name: 'FILE|IMAGE', about: 'an image', complete: 'image' }],
    flags: templateAdding,
    run: async (input) => (await import('./templates.ts')).templatesAdd(input),
  }),
  'templates set': command({
    group: 'files',
    summary: 'change settings of a node type',
    text: `Changes settings of a node type, such as ram=2048, name=Router or symbol=firewall. Nodes that were made of it before
stay as they are.`,
    args: [
      { name: 'TEMPLATE', about: 'name or id of a node type', complete: 'template' },
      { name: 'KEY=VALUE', about: 'a setting', many: true },
    ],
    flags: serviceFlags,
    run: async (input) => (await import('./templates.ts')).templatesSet(input),
  }),
  'templates rm': command({
    group: 'files',
    summary: 'delete node types; their nodes stay',
    text: 'Deletes node types. Nodes that were made of them stay.',
    args: [{ name: 'TEMPLATE', about: 'name or id of a node type', many: true, complete: 'template' }],
    flags: serviceFlags,
    run: async (input) => (await import('./templates.ts')).templatesRm(input),
  }),
  'images ls': command({
    group: 'files',
    summary: 'list the images of nodes',
    text: 'Lists the images that nodes can start from, after it has computed the digests of new images.',
    flags: serviceFlags,
    run: async (input) => (await import('./images.ts')).imagesLs(input),
  }),
  'images push': command({
    group: 'files',
    summary: 'upload images to the service; resume an interrupted upload',
    text: `Uploads images to the service, which checks their digests. The same command resumes an interrupted upload. An image
that the service already has is skipped.`,
    args: [{ name: 'FILE', about: 'an image', many: true, complete: 'file' }],
    flags: imagePushing,
    run: async (input) => (await import('./images.ts')).imagesPush(input),
  }),
  'images pull': command({
    group: 'files',
    summary: 'bring images of containers from a registry to the service',
    text: `Fetches images of containers from their registries and uploads them. skopeo on this machine fetches them, with the
log-ins of "skopeo login" or "docker login": patchbay images pull frrouting/frr:v8.4.0
An image of Docker Hub needs no registry in its name. Its file is named after it, here frrouting_frr_v8.4.0.tar.`,
    args: [{ name: 'NAME', about: 'an image, such as alpine:3.20 or quay.io/frrouting/frr:9.1.0', many: true }],
    flags: imagePulling,
    run: async (input) => (await import('./images-pull.ts')).imagesPull(input),
  }),
  'images make': command({
    group: 'files',
    summary: 'make an image of a node, with what it has written',
    text: `Makes an image of a container: the image that it was made of, and a layer with what the container has written. The
container may run. The image is then on the compute of the node, and its environment and command are not in it:
patchbay images make wan-edge/web web-1.tar`,
    args: [
      { name: 'LAB/NODE', about: 'a node', complete: 'node' },
      { name: 'NAME', about: 'name of the new image' },
    ],
    flags: serviceFlags,
    run: async (input) => (await import('./images.ts')).imagesMake(input),
  }),
  'images rename': command({
    group: 'files',
    summary: 'rename an image',
    text: `Renames an image within its directory, and never replaces another one. An image that a node of an open lab needs is not
renamed, and the message names the node. Nodes of closed labs, lab files and templates keep the old name.`,
    args: [
      { name: 'OLD', about: 'name of an image', complete: 'image' },
      { name: 'NEW', about: 'new name, with the directory of the image if it is in one' },
    ],
    flags: imageChoosing,
    run: async (input) => (await import('./images.ts')).imagesRename(input),
  }),
  'images rm': command({
    group: 'files',
    summary: 'delete images',
    text: 'Deletes images. An image that a node of an open lab needs is not deleted, and the message names the node.',
    args: [{ name: 'IMAGE', about: 'name of an image', many: true, complete: 'image' }],
    flags: imageChoosing,
    run: async (input) => (await import('./images.ts')).imagesRm(input),
  }),
  serve: command({
    group: 'service',
    summary: 'run the service in the foreground (API reference at /docs)',
    text: `Runs the service until Ctrl-C or SIGTERM, which also stop the nodes (unless on_exit is keep). When it is ready, it
prints its address on standard output. The log goes to standard error, as text on a terminal, otherwise as JSON.`,
    settings: 'list',
    run: async ({ argv }) => {
      const { loadConfig } = await import('../service/config/load.ts')
      return (await import('../service/serve.ts')).serve(loadConfig({ argv, env: process.env }))
    },
  }),
  'service status': command({
    group: 'service',
    summary: 'show whether your local service runs, and where',
    text: 'Shows whether your local service runs, where, and how many labs it has. The exit code is 5 if it does not run.',
    flags: outputFlags,
    run: async (input) => (await import('./service.ts')).serviceStatus(input),
  }),
  'service start': command({
    group: 'service',
    summary: 'start your local service in the background',
    text: `Starts your local service in the background, as "patchbay up" does, on http://127.0.0.1:3080 or a free port, with the
settings that "patchbay config" shows. When the service ends, its nodes keep running.`,
    flags: outputFlags,
    run: async (input) => (await import('./service.ts')).serviceStart(input),
  }),
  'service stop': command({
    group: 'service',
    summary: 'stop your local service',
    text: `Stops your local service. If it was started in the background, its nodes keep running, and the next service takes
them over; "patchbay down" stops them.`,
    flags: outputFlags,
    run: async (input) => (await import('./service.ts')).serviceStop(input),
  }),
  'service logs': command({
    group: 'service',
    summary: 'show the log of your local service in the background',
    text: 'Shows the last lines of the log.',
    flags: logging,
    run: async (input) => (await import('./service.ts')).serviceLogs(input),
  }),
  mcp: command({
    group: 'service',
    summary: 'run an MCP server for an assistant, on standard input and output',
    text: `Gives an assistant tools for labs by the Model Context Protocol, on standard input and output, until the input ends. The
assistant starts the command: claude mcp add patchbay -- patchbay mcp. The tools ask the service with your token, and may
do what it may. With --approve each change is planned first, and made when "confirm" is called with its number.`,
    flags: assisting,
    run: async (input) => (await import('./assistants.ts')).mcp(input),
  }),
  login: command({
    group: 'service',
    summary: 'save a remote service and its token for all commands',
    text: `Saves the service at URL and a token for all commands. The token is typed, or read from standard input:
patchbay login https://labs.example.org < token. It is not an argument, because other users can see these ("ps"). The
command checks it and saves it in a file that only you can read; it is sent to this service only. --server,
PATCHBAY_SERVER and PATCHBAY_TOKEN take precedence over the saved login.`,
    args: [{ name: 'URL', about: 'service URL (default: $PATCHBAY_SERVER, then the saved login)', optional: true }],
    flags: outputFlags,
    run: async (input) => (await import('./login.ts')).login(input),
  }),
  logout: command({
    group: 'service',
    summary: 'remove the saved login',
    text: `Removes the service and the token that "patchbay login" has saved. Commands then use your local service. The token
stays valid; "patchbay tokens rm" revokes it.`,
    flags: outputFlags,
    run: async (input) => (await import('./login.ts')).logout(input),
  }),
  doctor: command({
    group: 'service',
    summary: 'check what labs need on this machine',
    text: `Checks what labs need on this machine, and shows the command that fixes each problem. The exit code is 1 if something
that every lab needs is missing. The command accepts the flags of "patchbay serve", and checks the data directory and
the programs that they name.`,
    flags: outputFlags,
    settings: 'named',
    run: async ({ argv }) => (await import('./doctor.ts')).doctorCommand(argv),
  }),
  config: command({
    group: 'service',
    summary: 'show the settings in force and their sources',
    text: `Shows every setting with its value and its source: flag, environment variable, file or default. Secrets are masked.
The command accepts the flags of "patchbay serve", and shows the resulting settings.`,
    flags: outputFlags,
    settings: 'list',
    run: async ({ argv }) => (await import('./config.ts')).configCommand(argv),
  }),
  'computes ls': command({
    group: 'fleet',
    summary: 'list the computes of the service',
    text: 'Lists the computes of the service with their state, load and labels.',
    flags: serviceFlags,
    run: async (input) => (await import('./computes.ts')).computesLs(input),
  }),
  'computes add': command({
    group: 'fleet',
    summary: 'add a service on another machine as a compute',
    text: `Registers the Patchbay service at URL as a compute; your service connects to it. The password is typed, or read from
standard input: patchbay computes add http://10.0.0.7:3080 --user lab < password. A machine without an address joins
by itself: "patchbay tokens create NAME --join" creates its token, "patchbay serve --join" uses it.`,
    args: [{ name: 'URL', about: 'address of the compute' }],
    flags: computeAdding,
    run: async (input) => (await import('./computes.ts')).computesAdd(input),
  }),
  'computes drain': command({
    group: 'fleet',
    summary: 'move the stopped labs of a compute to others',
    text: `Places no new labs on the compute, and moves its stopped labs to other computes, with their files and snapshots. An
open lab is closed for the move and opened again. Labs with running nodes stay and are listed, and the exit code is 4:
stop them, and drain again. Ctrl-C cancels the drain; labs that were moved stay there. --undo allows new labs again.`,
    args: [{ name: 'COMPUTE', about: 'name or id of a compute', complete: 'compute' }],
    flags: draining,
    run: async (input) => (await import('./computes.ts')).computesDrain(input),
  }),
  'computes label': command({
    group: 'fleet',
    summary: 'set the labels of a compute, for placement',
    text: `Replaces the labels of a compute that were set before, such as site=berlin. Without LABEL only the labels remain that
the compute detects itself (kvm, arch, platform). The field "placement" of a lab asks for labels.`,
    args: [
      { name: 'COMPUTE', about: 'name or id of a compute', complete: 'compute' },
      { name: 'LABEL', about: 'a label: NAME or NAME=VALUE', many: true, optional: true },
    ],
    flags: serviceFlags,
    run: async (input) => (await import('./computes.ts')).computesLabel(input),
  }),
  'computes rm': command({
    group: 'fleet',
    summary: 'remove computes; their nodes keep running',
    text: 'Removes computes. Their nodes keep running, and are listed again when the compute is added again.',
    args: [{ name: 'COMPUTE', about: 'name or id of a compute', many: true, complete: 'compute' }],
    flags: serviceFlags,
    run: async (input) => (await import('./computes.ts')).computesRm(input),
  }),
  'tokens ls': command({
    group: 'fleet',
    summary: 'list the tokens without their secrets',
    text: 'Lists the tokens of the service with their rights. Only administrators can do this.',
    flags: serviceFlags,
    run: async (input) => (await import('./tokens.ts')).tokensLs(input),
  }),
  'tokens create': command({
    group: 'fleet',
    summary: 'create a token for a client, or for a compute that joins',
    text: `Creates a token and prints it once. Standard output has nothing but the token:
patchbay tokens create ci --role operate > token. The user of the token passes it to "patchbay login".`,
    args: [{ name: 'NAME', about: 'name of the token' }],
    flags: tokenCreating,
    run: async (input) => (await import('./tokens.ts')).tokensCreate(input),
  }),
  'tokens rm': command({
    group: 'fleet',
    summary: 'revoke tokens',
    text: 'Revokes tokens. Requests with them are then refused.',
    args: [{ name: 'TOKEN', about: 'name or id of a token', many: true, complete: 'token' }],
    flags: serviceFlags,
    run: async (input) => (await import('./tokens.ts')).tokensRm(input),
  }),
  'tokens key': command({
    group: 'fleet',
    summary: 'add, list and remove the SSH keys of tokens',
    text: `Adds a public key to a token (patchbay tokens key add ci ~/.ssh/id_ed25519.pub), lists the keys of tokens (patchbay
tokens key ls), or removes one by its id, fingerprint or comment (patchbay tokens key rm ci KEY). Its owner opens
consoles by SSH with the rights of the token: ssh -p 3022 LAB/NODE@HOST, if the service has the setting ssh.port.`,
    args: [
      { name: 'ACTION', about: 'what to do', choices: ['add', 'ls', 'rm'] },
      { name: 'TOKEN', about: 'name or id of a token', optional: true, complete: 'token' },
      { name: 'FILE|KEY', about: 'the public key file to add, or the key to remove', optional: true, complete: 'file' },
    ],
    flags: serviceFlags,
    run: async (input) => (await import('./tokens.ts')).tokensKey(input),
  }),
  'classes ls': command({
    group: 'fleet',
    summary: 'list the classes, or the students of a class',
    text: 'Lists the classes with how many students they have, or the students of one class with their labs and links.',
    args: [{ ...theClass, optional: true }],
    flags: serviceFlags,
    run: async (input) => (await import('./classes.ts')).classesLs(input),
  }),
  'classes create': command({
    group: 'fleet',
    summary: 'give each student of a class a lab, and a link to it',
    text: `Copies a lab for each student and prints a link for each: patchbay classes create netlab --lab routing --students
names.txt. Standard output has nothing but the table of the links, which cannot be shown again. A student who opens the
link has that lab alone. With a class that is there its new students are added.`,
    args: [
      { name: 'CLASS', about: 'name of the class; the labs are named CLASS-STUDENT' },
      { name: 'STUDENT', about: 'name of a student', optional: true, many: true },
    ],
    flags: classCreating,
    run: async (input) => (await import('./classes.ts')).classesCreate(input),
  }),
  'classes links': command({
    group: 'fleet',
    summary: 'make new links for the students of a class',
    text: 'Prints new links for all students of a class, or for some. The links that they had become invalid.',
    args: [theClass, someStudents],
    flags: classLinking,
    run: async (input) => (await import('./classes.ts')).classesLinks(input),
  }),
  'classes reset': command({
    group: 'fleet',
    summary: 'put labs of a class back to how they were handed out',
    text: 'Restores the labs of all students of a class, or of some, to their first snapshot. Their nodes are stopped.',
    args: [theClass, someStudents],
    flags: confirming,
    run: async (input) => (await import('./classes.ts')).classesReset(input),
  }),
  'classes rm': command({
    group: 'fleet',
    summary: 'delete a class with its labs and links',
    text: 'Deletes the labs of a class with their disks, and its links. The lab that was copied stays.',
    args: [theClass],
    flags: confirming,
    run: async (input) => (await import('./classes.ts')).classesRm(input),
  }),
  'organizations ls': command({
    group: 'fleet',
    summary: 'list the organizations that share a gateway',
    text: `Lists the organizations of a gateway with their limits. Only the administrator of the deployment can do this, with the
credentials of its configuration. PATCHBAY_ORGANIZATION selects the organization in which all commands act.`,
    flags: serviceFlags,
    run: async (input) => (await import('./organizations.ts')).organizationsLs(input),
  }),
  'organizations create': command({
    group: 'fleet',
    summary: 'create an organization with its own computes, labs and tokens',
    text: `Creates an organization, which cannot see other organizations. Create its first token with
PATCHBAY_ORGANIZATION=ID patchbay tokens create NAME --role admin.`,
    args: [{ name: 'ID', about: 'lower-case letters, digits and "-"' }],
    flags: organizationCreating,
    run: async (input) => (await import('./organizations.ts')).organizationsCreate(input),
  }),
  'organizations set': command({
    group: 'fleet',
    summary: 'change the name or the limits of an organization',
    text: 'Changes the given name or limits. A limit below the current number deletes nothing.',
    args: [{ name: 'ID', about: 'the organization', complete: 'organization' }],
    flags: organizationCreating,
    run: async (input) => (await import('./organizations.ts')).organizationsSet(input),
  }),
  'organizations rm': command({
    group: 'fleet',
    summary: 'delete organizations and revoke their tokens',
    text: 'Deletes organizations that have no projects and no computes. --force also deletes others.',
    args: [{ name: 'ID', about: 'the organization', many: true, complete: 'organization' }],
    flags: organizationRemoving,
    run: async (input) => (await import('./organizations.ts')).organizationsRm(input),
  }),
  version: command({
    group: 'program',
    summary: 'show the version of the program, and of a service',
    text: 'Shows the version of the program, and of the service that --server, PATCHBAY_SERVER or the saved login names.',
    flags: {
      server: { value: 'URL', about: 'service URL (default: $PATCHBAY_SERVER, then the saved login)' },
      ...outputFlags,
    },
    run: async (input) => (await import('./version.ts')).versionCommand(input),
  }),
  completion: command({
    group: 'program',
    summary: 'print the completion script of a shell',
    text: `Prints a shell script that completes commands, flags, files, and the names of labs, nodes and links of the service. In
bash: source <(patchbay completion bash)
A service that does not respond within 1 s offers no names; PATCHBAY_COMPLETION_WAIT sets another time, such as 3s.`,
    args: [{ name: 'SHELL', about: 'the shell', choices: ['bash', 'zsh', 'fish'] }],
    flags: outputFlags,
    run: async ({ args: [shell = ''] }) => (await import('./completion.ts')).completion(shell),
  }),
  complete: command({
    group: 'program',
    hidden: true,
    summary: 'print completions of the last word',
    text: 'Prints the completions of the last word, one per line, for the scripts of "patchbay completion".',
    args: [{ name: 'WORD', about: 'the words after patchbay', optional: true, many: true }],
    run: async ({ args }) => (await import('./completion.ts')).complete(args, commands),
  }),
  help: command({
    group: 'program',
    summary: 'show help, like COMMAND --help',
    text: 'Shows the list of commands, or the help of one command.',
    args: [{ name: 'COMMAND', about: 'a command', optional: true, many: true, complete: 'command' }],
    flags: outputFlags,
    run: async ({ args }) => (await import('./help.ts')).help(args, commands),
  }),
}
