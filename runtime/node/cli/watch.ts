import { linkState, linkText, stateOf } from '../../../src/client/link-names.ts'
import type { LabLink, LabNode } from '../../../src/client/patchbay.ts'
import { clientOf } from './client.ts'
import type { CommandInput, serviceFlags } from './command.ts'
import { exits } from './exits.ts'
import { linkJson, nodeJson } from './inspect.ts'
import { labOf, linksOf, nameOrder, nodesOf, runningText } from './targets.ts'

/** Least time between two pictures on a terminal, ms. */
const pictureMs = 250
const [enter, leave, home] = ['\u001b[?1049h\u001b[?25l', '\u001b[?25h\u001b[?1049l', '\u001b[H']
const restOfLine = '\u001b[K'
const restOfScreen = '\u001b[J'

/** `patchbay watch LAB`: a table of its nodes and links that stays current; a line for each change where there is no terminal. */
export async function watch({ args: [word = ''], flags, signal }: CommandInput<typeof serviceFlags>): Promise<number> {
  const context = { client: await clientOf(flags), signal }
  const lab = await labOf(word, context)
  const nodes = new Map<string, LabNode>()
  const links = new Map<string, LabLink>()
  const read = async () => {
    const [allNodes, allLinks] = await Promise.all([nodesOf(lab, context), linksOf(lab, context)])
    nodes.clear()
    links.clear()
    for (const it of allNodes) nodes.set(it.node_id, it)
    for (const it of allLinks) links.set(it.link_id, it)
  }
  const isScreen = process.stdout.isTTY === true && !flags.json
  const { fitted, shown, tableOf } = await import('./table.ts')
  let note = ''
  const picture = () => {
    // A node that changes must not change its line.
    const all = [...nodes.values()].sort((a, b) => nameOrder.compare(a.name, b.name))
    const hasReasons = all.some(({ status_reason }) => status_reason)
    const parts = [
      `${shown(lab.name)}: ${runningText(nodes.values())}${note}   (Ctrl-C leaves)`,
      tableOf(
        ['NODE', 'STATE', ...(hasReasons ? ['REASON'] : [])],
        all.map((node) => [node.name, stateOf(node), ...(hasReasons ? [node.status_reason ?? ''] : [])]),
      ),
    ]
    if (links.size > 0) {
      const rows = [...links.values()]
        .map((link) => [
          linkText(link, all),
          linkState(link),
          rate(link.traffic_ab?.bits_per_s),
          rate(link.traffic_ba?.bits_per_s),
        ])
        .sort(([a = ''], [b = '']) => nameOrder.compare(a, b))
      parts.push(tableOf(['LINK', 'STATE', 'THERE', 'BACK'], rows))
    }
    const { rows = 24, columns = 80 } = process.stdout
    const lines = parts.join('\n\n').split('\n')
    const fitting =
      lines.length < rows ? lines : [...lines.slice(0, rows - 2), `... ${lines.length - rows + 2} more lines`]
    process.stdout.write(
      `${home}${fitting.map((line) => fitted(line, columns) + restOfLine).join('\r\n')}${restOfScreen}`,
    )
  }
  let timer: NodeJS.Timeout | undefined
  const changed = () => {
    if (!isScreen) return
    timer ??= setTimeout(() => {
      timer = undefined
      picture()
    }, pictureMs)
  }
  const line = (what: string, now: object) =>
    isScreen ? undefined : process.stdout.write(flags.json ? `${JSON.stringify(now)}\n` : `${shown(what)}\n`)
  const resized = () => changed()
  if (isScreen) {
    process.stdout.write(enter)
    process.stdout.on('resize', resized)
  }
  try {
    await read()
    if (isScreen) picture()
    else for (const it of nodes.values()) line(`${it.name} is ${stateOf(it)}`, nodeJson(it))
    const onLost = (error: Error | undefined) => {
      note = error === undefined ? '' : '; the connection was lost'
      changed()
    }
    for await (const { action, event } of context.client.feed({ project: lab.project_id, signal, onLost })) {
      if (action === 'resync') await read()
      else if (action === 'node.created' || action === 'node.updated') {
        const before = nodes.get(event.node_id)
        nodes.set(event.node_id, event)
        const { name, status_reason } = event
        if (before?.status !== event.status || before?.status_reason !== status_reason)
          line(`${name} is ${stateOf(event)}${status_reason ? `: ${status_reason}` : ''}`, nodeJson(event))
      } else if (action === 'node.deleted') {
        nodes.delete(event.node_id)
        line(`${event.name} is deleted`, { ...nodeJson(event), status: 'deleted' })
      } else if (action === 'link.created' || action === 'link.updated' || action === 'link.state') {
        const before = links.get(event.link_id)
        const now = action === 'link.state' ? before && { ...before, ...event } : event
        if (now === undefined) continue
        links.set(event.link_id, now)
        if (before?.verdict !== now.verdict)
          line(`${linkText(now, [...nodes.values()])} is ${now.verdict}`, linkJson(now, [...nodes.values()]))
      } else if (action === 'link.deleted') links.delete(event.link_id)
      else if (action === 'project.closed') break
      else continue
      changed()
    }
  } finally {
    clearTimeout(timer)
    process.stdout.off('resize', resized)
    if (isScreen) process.stdout.write(leave)
  }
  return signal.aborted ? exits.interrupted : exits.done
}

/** Bits a second for people. */
function rate(bits: number | undefined): string {
  if (bits === undefined) return '-'
  const units = ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s']
  let value = bits
  let unit = 0
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}
