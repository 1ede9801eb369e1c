import { endText, linkState, stateOf } from '../../../src/client/link-names.ts'
import type { LabLink, LabNode } from '../../../src/client/patchbay.ts'
import { kindIfKnown } from '../../../src/model/kinds/node.ts'
import type { CommandContext } from './client.ts'
import { coloured } from './colours.ts'
import type { CommandOutcome } from './outcome.ts'
import { computeNames, linksOf, type NodeTarget, nodesOf } from './targets.ts'

/** `patchbay inspect LAB/NODE`: its state, its console, what it runs, and where its ports lead; with `--json` all its settings. */
export async function inspectNode({ lab, node }: NodeTarget, context: CommandContext): Promise<CommandOutcome> {
  const project = { project_id: node.project_id, status: 'opened' as const }
  const [nodes, links] = await Promise.all([nodesOf(project, context), linksOf(project, context)])
  const ports = portsOf(node, nodes, links)
  return {
    json: { lab, node: { ...node, state: stateOf(node) }, ports },
    async text() {
      const { shown, tableOf } = await import('./table.ts')
      const facts = Object.entries(await factsOf(lab, node, context))
      const width = Math.max(...facts.map(([name]) => name.length))
      const head = ['PORT', 'PEER', 'LINK', 'STATE', 'REASON']
      const rows = ports.map(({ port, peer = '-', link = '', state = '-', reason = '' }) => [
        port,
        peer,
        link,
        state,
        reason,
      ])
      // Names of links and reasons: only where there are some.
      const columns = head.map((_, at) => at).filter((at) => rows.some((row) => row[at] !== ''))
      const used = (row: readonly string[]) => columns.map((at) => row[at] ?? '')
      const lines = facts.map(([name, value]) => {
        const text = shown(value)
        return `  ${name.padEnd(width)}  ${name === 'state' ? coloured(stateOf(node), text) : text}`
      })
      return [
        `${shown(`${lab}/${node.name}`)}\n${lines.join('\n')}`,
        ...(rows.length === 0 ? [] : [tableOf(used(head), rows.map(used))]),
      ].join('\n\n')
    },
  }
}

/** The settings that name an image or a VM, in the order in which people look for them. */
const imageFields: Readonly<Record<string, string>> = {
  image: 'image',
  path: 'image',
  vmname: 'VM',
  hda_disk_image: 'disk 1',
  hdb_disk_image: 'disk 2',
  hdc_disk_image: 'disk 3',
  hdd_disk_image: 'disk 4',
  cdrom_image: 'CD-ROM',
  bios_image: 'BIOS',
  kernel_image: 'kernel',
  initrd: 'initrd',
}

/** What a person wants to know of a node, in lines. What it does not have is left out. */
async function factsOf(lab: string, node: LabNode, context: CommandContext): Promise<Record<string, string>> {
  const { node_type, status_reason, console: port, compute_id, properties } = node
  const title = kindIfKnown(node_type)?.title ?? node_type
  const set = (name: string): string | undefined => {
    const value = (properties as Record<string, unknown>)[name]
    return value === undefined || value === null || value === '' ? undefined : String(value)
  }
  const ram = set('ram')
  const images = Object.entries(imageFields).map(([field, word]) => [word, set(field)] as const)
  const facts: Record<string, string | undefined> = {
    kind: title.toLowerCase() === node_type ? title : `${title} (${node_type})`,
    state: status_reason ? `${stateOf(node)}: ${status_reason}` : stateOf(node),
    console: port === null ? undefined : consoleText(lab, node),
    ...Object.fromEntries(images),
    RAM: ram === undefined || ram === '0' ? undefined : `${ram} MB`,
    CPUs: set('cpus'),
    engine: set('engine'),
    MAC: set('mac_address'),
    compute: (await computeNames(context))(compute_id),
  }
  return Object.fromEntries(Object.entries(facts).filter((fact): fact is [string, string] => fact[1] !== undefined))
}

/** How a console is reached: by a command, or by what shows its type. */
function consoleText(lab: string, { name, console_type, console_host, console: port }: LabNode): string {
  const address = `${console_type} ${console_host ?? ''}:${port}`
  return console_type === 'telnet' ? `patchbay console ${lab}/${name}  (${address})` : address
}

interface PortRow {
  readonly port: string
  /** The other end of its link, such as `R2:eth0`. */
  readonly peer?: string
  readonly link?: string
  readonly state?: string
  readonly reason?: string
}

/** The ports of a node, with where they lead. */
function portsOf(node: LabNode, nodes: readonly LabNode[], links: readonly LabLink[]): PortRow[] {
  return (node.ports ?? []).map(({ short_name: port, adapter_number, port_number }) => {
    const isHere = (end: LabLink['nodes'][number]) =>
      end.node_id === node.node_id && end.adapter_number === adapter_number && end.port_number === port_number
    const link = links.find((one) => one.nodes.some(isHere))
    if (link === undefined) return { port }
    const peer = link.nodes.find((end) => !isHere(end))
    return {
      port,
      ...(peer !== undefined && { peer: endText(peer, nodes) }),
      ...(link.name != null && { link: link.name }),
      state: linkState(link),
      ...(link.verdict_reason !== null && { reason: link.verdict_reason }),
    }
  })
}
