import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import {
  idOfMac,
  macOfPc,
  noPcId,
  type PcCreate,
  type PcNode,
  type PcUpdate,
  pc,
  pcIds,
} from '../../../../src/model/kinds/pc.ts'
import type { Launch, NodeKind, PortWire, PortWiring } from '../../engine/nodes/kind.ts'
import { fieldsOf } from '../../engine/nodes/view-fields.ts'
import { withDiskErrors } from '../../engine/storage/disk.ts'
import { FileFacts } from '../../engine/storage/file-facts.ts'
import { findProgram } from '../../os/system/find-program.ts'
import type { DriverHost } from '../node-driver.ts'
import { type PcKindNode, PcProperties } from './properties.ts'
import { bootScript, bootScriptName, readScript, renameInScript, scriptName, writeScript } from './startup-script.ts'
import { findVpcs, type Vpcs } from './vpcs.ts'

type Engine = PcNode['engine']

export type PcSettings = { readonly engine: Engine | 'auto'; readonly vpcs_path: string }

/** VPCS takes the last byte of the MAC address (`-m`), so only the embedded engine runs pcs with greater ids. */
const lastVpcsId = 254
/** Until VPCS is probed, stopped pcs show the engine that the setting names, ms. */
const firstProbeMs = 300
/** VPCS without -R also binds the UDP port of `-s` plus this number. */
const secondPortOffset = 9
const onlyPort = [{ adapter: 0, port: 0 }]

/** The pc kind: VPCS where a recent one is installed, else the embedded simulator. */
export class PcKind implements NodeKind<PcProperties, typeof pc> {
  readonly descriptor = pc
  readonly schema = PcProperties
  readonly stopGraceMs = 3000
  readonly canBeHeld = true
  readonly #host: DriverHost<PcProperties, PcSettings>
  /** Scripts as the API shows them. They are read from files, because a guest writes its script, too (`save`). */
  readonly #scripts = new FileFacts<string | null>()
  /** The engine of a start now; shown for stopped pcs. */
  #engineNow: Engine = 'embedded'
  /** Whether a VPCS that starts now binds a second UDP port; assumed of one that has not been probed. */
  #bindsSecondPort: boolean

  constructor(host: DriverHost<PcProperties, PcSettings>) {
    this.#host = host
    const { engine, vpcs_path } = host.settings()
    this.#bindsSecondPort = engine !== 'embedded' && host.isLocal() && findProgram(vpcs_path) !== undefined
    if (engine === 'vpcs' && this.#bindsSecondPort) this.#engineNow = 'vpcs'
    // Not at once: a start of the service would wait for the process.
    setTimeout(() => void this.#findVpcs(), firstProbeMs).unref()
  }

  /** The VPCS of a start now. Not outside local mode: its console can connect to every port of the host (`rlogin`). */
  async #findVpcs(): Promise<Vpcs | undefined> {
    const { engine, vpcs_path } = this.#host.settings()
    const found = engine === 'embedded' || !this.#host.isLocal() ? undefined : await findVpcs(vpcs_path)
    const vpcs = engine === 'vpcs' || found?.isPreferred === true ? found : undefined
    this.#engineNow = vpcs === undefined ? 'embedded' : 'vpcs'
    this.#bindsSecondPort = vpcs !== undefined && !vpcs.hasRelaySwitch
    return vpcs
  }

  async capabilities() {
    await this.#findVpcs()
    return { pc_engine: this.#engineNow }
  }

  ports() {
    return onlyPort
  }

  readonly wiring: PortWiring<PcProperties> = {
    portsBeside: ({ record }, isRunning) => {
      const bindsSecond = isRunning ? record.properties.engine === 'vpcs' : this.#bindsSecondPort
      return bindsSecond ? [secondPortOffset] : []
    },
  }

  onNew({ record, siblings }: PcKindNode, { mac_address }: PcCreate): void {
    const taken = new Set(siblings.map((it) => it.record.properties.pc_id))
    // The address of another pc of the project is ignored: a client may create a copy with the properties that the other pc showed.
    const wanted = mac_address == null ? noPcId : idOfMac(mac_address)
    if (wanted !== noPcId && !taken.has(wanted)) {
      record.properties = { pc_id: wanted }
      return
    }
    for (let pc_id = 0; pc_id < pcIds; pc_id++) {
      if (taken.has(pc_id) || pc_id === noPcId) continue
      record.properties = { pc_id }
      return
    }
    throw conflict(`The project already has ${pcIds - 1} pcs, and no MAC address is left for another one`)
  }

  async prepare(node: PcKindNode, input: PcCreate): Promise<void> {
    const { startup_script } = input
    // A script that is already there belongs to a saved lab, and is kept.
    if (startup_script == null || readScript(node.directory) !== null) return
    await writeScript(node.directory, startup_script, node.record.name)
  }

  /** Without the script: that of a saved lab is kept. */
  adopt({ name, console, console_type }: PcCreate): PcUpdate {
    return { name, ...(console !== undefined && { console }), ...(console_type !== undefined && { console_type }) }
  }

  async update(node: PcKindNode, { startup_script }: PcUpdate, before: string): Promise<void> {
    const { name } = node.record
    try {
      if (startup_script != null) await writeScript(node.directory, startup_script, name)
      else if (before !== name) await renameInScript(node.directory, before, name)
    } finally {
      this.#scripts.forget(node.key)
    }
  }

  async launch(node: PcKindNode, wires: ReadonlyMap<string, PortWire>): Promise<Launch> {
    const wire = wires.get('0/0')
    if (wire === undefined) throw conflict('The pc has no such port')
    const { engine, vpcs_path } = this.#host.settings()
    const vpcs = await this.#findVpcs()
    if (engine === 'vpcs' && !this.#host.isLocal()) {
      throw conflict(
        'VPCS runs in local mode only, because its console reaches every TCP port of the host; set pc.engine = "embedded" or "auto"',
      )
    }
    if (engine === 'vpcs' && node.record.properties.pc_id > lastVpcsId) {
      throw conflict(
        `VPCS has MAC addresses for ${lastVpcsId + 1} pcs in a project only; set pc.engine = "auto" or "embedded" for more`,
      )
    }
    if (vpcs === undefined && engine === 'vpcs') {
      throw conflict(
        `VPCS (${vpcs_path}) does not exist or is older than 0.5b1; install it (apt-get install vpcs), or set pc.engine = "embedded"`,
      )
    }
    const isExternal = vpcs !== undefined && node.record.properties.pc_id <= lastVpcsId
    node.record.properties = { ...node.record.properties, engine: isExternal ? 'vpcs' : 'embedded' }
    if (!isExternal) return embedded(node, wire)
    const script = join(this.#host.runDirectory, bootScriptName(node.record.node_id))
    const text = bootScript(node.record.name, vpcs.nameBytes, existsSync(join(node.directory, scriptName)))
    await withDiskErrors('Starting the pc', () => writeFile(script, text))
    return external(node, wire, vpcs, script)
  }

  view(node: PcKindNode): PcNode {
    const { record, key, directory, status } = node
    const { engine } = record.properties
    const read = () => readScript(directory)
    const script = this.#scripts.get(key, directory, () => [directory], read)
    return {
      ...fieldsOf(node),
      console_type: record.console_type === 'none' ? 'none' : 'telnet',
      startup_script: script,
      startup_script_path: script === null ? null : scriptName,
      mac_address: macOf(node),
      engine: status !== 'stopped' && engine !== undefined ? engine : this.#engineNow,
    }
  }

  async duplicate(
    source: PcKindNode,
    { key, record, directory }: PcKindNode,
    copy: () => Promise<void>,
  ): Promise<void> {
    await copy()
    record.properties = { ...source.record.properties, pc_id: record.properties.pc_id }
    await renameInScript(directory, source.record.name, record.name)
    this.#scripts.forget(key)
  }

  readonly cleanup = {
    dispose: async ({ key, record }: PcKindNode) => {
      this.#scripts.forget(key)
      await rm(join(this.#host.runDirectory, bootScriptName(record.node_id)), { force: true }).catch(
        ignore('a start of the pc writes it again'),
      )
    },
  }
}

const macOf = ({ record }: PcKindNode): string => macOfPc(record.properties.pc_id)

function embedded(node: PcKindNode, { guest_port, switch_port }: PortWire): Launch {
  const [mac, { directory, record }] = [macOf(node), node]
  const run = { type: 'pc', name: record.name, mac, directory, script: scriptName, guest_port, switch_port } as const
  return { run, command_line: `embedded pc, MAC ${mac}` }
}

function external(
  node: PcKindNode,
  { guest_port, switch_port }: PortWire,
  { path, hasRelaySwitch }: Vpcs,
  script: string,
): Launch {
  const args = [
    ...['-i', '1', '-m', String(node.record.properties.pc_id)],
    ...['-s', String(guest_port), '-c', String(switch_port), '-t', '127.0.0.1'],
    ...(hasRelaySwitch ? ['-R'] : []),
    script,
  ]
  return {
    command_line: [path, ...args].join(' '),
    run: {
      type: 'process',
      command: path,
      args,
      cwd: node.directory,
      log: join(node.directory, 'vpcs.log'),
      // On a terminal VPCS stays in the foreground and has its console there, instead of on a TCP port without access control.
      stdio: 'pty',
      ready: 'Virtual PC Simulator',
      // VPCS keeps running when it cannot bind its port, but receives no frames.
      failure: '[Address already in use]',
      // Only Ctrl-C ends a ping.
      interrupts: true,
    },
  }
}
