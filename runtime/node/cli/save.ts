import { existsSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import type { LabLink, LabPlan } from '../../../src/client/patchbay.ts'
import type { Desired } from '../../../src/labfile/desired.ts'
import { fileNamesOf } from '../../../src/labfile/from-project.ts'
import { nodeIdOf } from '../../../src/labfile/ids.ts'
import { keyOf } from '../../../src/labfile/names.ts'
import { readLabFile } from '../../../src/labfile/read.ts'
import { type RenamedNode, withNames } from '../../../src/labfile/rename.ts'
import { type LinkEnds, type NamedCompute, savedLab } from '../../../src/labfile/save.ts'
import type { SavedChange } from '../../../src/labfile/save-edits.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { replaceFiles } from '../engine/storage/user-file.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { type CommandContext, clientOf } from './client.ts'
import type { CommandInput } from './command.ts'
import type { saving } from './command-flags.ts'
import { CommandError, type ExitCode, exits, wrongArguments } from './exits.ts'
import { isLabFile, type LabSource, labFilesHere, onlyLabFile, readLab, readText } from './lab-file.ts'
import type { CommandOutcome } from './outcome.ts'
import { labOf } from './targets.ts'
import { labNameIn, put, stepText } from './topology.ts'

type Flags = CommandInput<typeof saving>['flags']

/** `patchbay save FILE|LAB`: writes the changes of a lab back into its file. */
export async function save({ args: [word], flags, signal }: CommandInput<typeof saving>): Promise<CommandOutcome> {
  const path = await fileOf(word, flags)
  const source = await readLab(path, flags, { isToBeSaved: true })
  const context = { client: await clientOf(flags), signal }
  const lab = await labOf(source.desired.lab, context, { opens: true })
  const params = { project_id: lab.project_id }
  const [{ plan }, topology, actual] = await Promise.all([
    put(source, context, { dry_run: 'true' }),
    context.client.call('GET /v2/projects/{project_id}/topology', { params, signal }),
    actualOf(params, context),
  ])
  const nodes = [...topology.nodes, ...topology.segments]
  const { renamed, kept } = namesIn(source.desired, nodes)
  const names = new Map(nodes.map(({ node_id, name }) => [node_id, kept.get(name) ?? name]))
  const steps = [...plan.steps, ...plan.withheld]
  const configured = [
    ...plan.extra.filter(({ what }) => what === 'config'),
    ...plan.withheld.filter(({ flag }) => flag === 'config_from_file'),
  ]
  const saved = savedLab({
    text: source.document,
    desired: source.desired,
    actual: withNames(actual, kept),
    renamed,
    changed: new Set(steps.filter((it) => it.do === 'update' && it.what !== 'link').map(({ name }) => name)),
    configured: new Set(configured.map(({ name }) => name)),
    configs: flags.configs,
    all: flags.all,
    computes: await computesOf(source.desired, context),
    records: new Map(nodes.map((node) => [names.get(node.node_id) ?? node.name, node])),
    captured: topology.links.filter(({ capturing }) => capturing).map((link) => endsOf(link, names)),
  })
  const files = Object.entries(saved.files)
  const isChanged = saved.text !== source.document || files.length > 0
  // The service plans the new file: its steps are what the save has left out.
  const after: LabSource = { ...source, document: saved.text, files: { ...source.files, ...saved.files } }
  const left = leftIn(isChanged ? (await put(after, context, { dry_run: 'true' })).plan : plan, flags)
  if (isChanged && !flags.check) await write(path, source, saved)
  const exit: ExitCode = flags.check && isChanged ? exits.differs : left.length > 0 ? exits.withheld : exits.done
  return {
    exit,
    json: {
      file: path,
      lab: lab.name,
      project_id: lab.project_id,
      saved: isChanged && !flags.check,
      changes: saved.changes,
      files: files.map(([name]) => join(dirname(path), name)),
      left: left.map(({ text: _, ...it }) => it),
    },
    async text() {
      const { shown } = await import('./table.ts')
      const changes = [...saved.changes.map(changeText), ...files.map(([name]) => `  ~ file ${name}`)]
      const number = counted(changes.length, 'change')
      const head =
        changes.length > 0
          ? `${path}: ${flags.check ? `${number} to save` : `saved ${number}`}`
          : left.length > 0
            ? `${path}: nothing to save`
            : `${path} matches ${lab.name}; nothing to save`
      const rest = left.length === 0 ? [] : ['Not saved:', ...left.map(({ text }) => text)]
      return [head, ...changes, ...rest].map(shown).join('\n')
    },
  }
}

/**
 * The nodes of a lab whose names differ from those in its file. `renamed`: the nodes, by their names in the file. `kept`: the names in the
 * file, by the names that an export gives nodes whose names no file can have. Nodes are found as an apply finds them.
 */
function namesIn({ lab, nodes }: Desired, there: readonly RenamedNode[]) {
  const byName = new Map(there.map((node) => [keyOf(node.name), node]))
  const byId = new Map(there.map((node) => [node.node_id, node]))
  const sayable = fileNamesOf(there)
  const renamed = new Map<string, RenamedNode>()
  const kept = new Map<string, string>()
  for (const { name, node_id, was } of nodes) {
    const words = [name, ...(was === undefined ? [] : [was])]
    const ids = [node_id, ...words.slice(1).map((it) => nodeIdOf(lab, it))]
    const found = [...words.map((it) => byName.get(keyOf(it))), ...ids.map((it) => byId.get(it))]
    const node = found.find((it) => it !== undefined)
    if (node === undefined || node.name === name) continue
    const sayableName = sayable.get(node.node_id) ?? node.name
    if (sayableName === node.name) renamed.set(name, node)
    else for (const it of [node.name, sayableName]) kept.set(it, name)
  }
  return { renamed, kept }
}

/** The ends of a link, with the names that its nodes have in the file. */
function endsOf({ nodes: [a, b] }: LabLink, names: ReadonlyMap<string, string>): LinkEnds {
  const end = ({ node_id, ...port }: LabLink['nodes'][number]) => ({ node: names.get(node_id) ?? '', ...port })
  return { ends: [end(a as LabLink['nodes'][number]), end(b as LabLink['nodes'][number])] }
}

const signs = { create: '+', update: '~', delete: '-' } as const
const changeText = ({ do: does, what, name, was, keys }: SavedChange): string => {
  const former = was === undefined ? '' : ` (was ${was})`
  return `  ${signs[does]} ${what} ${name}${former}${keys.length === 0 ? '' : `: ${keys.join(', ')}`}`
}

/** The lab file that a word names: the file itself, or the one here whose lab has that name. CommandError 64. */
async function fileOf(word: string | undefined, flags: Flags): Promise<string> {
  if (word === '-') throw wrongArguments('expected a lab file or a lab; standard input cannot be saved')
  if (word === undefined) return onlyLabFile()
  // A name has no slash.
  if (isLabFile(word) || word.includes('/')) return word
  const files = labFilesHere()
  const names = await Promise.all(files.map((file) => labNameIn(file, flags).catch(() => undefined)))
  const found = files.filter((_, index) => names[index] === word)
  const [one, ...others] = found
  if (one === undefined)
    throw wrongArguments(`no lab file here is for the lab ${word}`, `"patchbay export ${word} FILE" writes one`)
  if (others.length > 0) throw wrongArguments(`several lab files here are for the lab ${word}: ${found.join(', ')}`)
  return one
}

/** The computes, when the file names some. For a user who may not list computes the file names them by id. */
async function computesOf({ nodes }: Desired, { client, signal }: CommandContext): Promise<readonly NamedCompute[]> {
  if (nodes.every(({ compute_id }) => compute_id === undefined)) return []
  return client.call('GET /v2/computes', { signal }).catch(() => [])
}

/** The lab, as a lab file of it would describe it. */
async function actualOf(params: { project_id: string }, { client, signal }: CommandContext) {
  const name = 'GET /v2/projects/{project_id}/topology'
  const answer = await client.answer(name, { params, query: { format: 'yaml' }, signal })
  return readLabFile(await answer.text())
}

/** Why a step would create something. */
const gone = 'it is not in the lab; "patchbay apply" creates it again'

/** Changes of a lab that a save has left out, with the flag that saves them. */
function leftIn({ steps, withheld, extra }: LabPlan, flags: Pick<Flags, 'all'>) {
  return [
    ...[...steps, ...withheld].map((it) => {
      const { flag: _, ...planned } = { flag: undefined, ...it }
      const step = planned.do === 'create' ? { ...planned, because: gone } : planned
      const isConfig = 'flag' in it && it.flag === 'config_from_file'
      const flag = isConfig ? 'configs' : step.do === 'update' || flags.all ? undefined : 'all'
      return { ...step, ...(flag !== undefined && { flag }), text: withFlag(stepText(step), flag) }
    }),
    ...extra.map((it) => {
      const flag = it.what === 'config' ? 'configs' : 'all'
      const because = it.because === undefined ? '' : `: ${it.because}`
      return { ...it, flag, text: withFlag(`  ${it.what} ${it.name}${because}`, flag) }
    }),
  ]
}

const withFlag = (text: string, flag: string | undefined): string => (flag === undefined ? text : `${text} (--${flag})`)

/** Writes the lab file and the configurations. CommandError 1, with nothing written. */
async function write(path: string, source: LabSource, saved: ReturnType<typeof savedLab>): Promise<void> {
  const base = dirname(path)
  const files = Object.entries(saved.files).map(([name, text]) => ({ name, path: join(base, normalize(name)), text }))
  const taken = files.find((it) => !Object.hasOwn(source.files, it.name) && existsSync(it.path))
  if (taken !== undefined)
    throw new CommandError(exits.failed, [
      { message: `${taken.path} exists, but ${path} does not name it`, hint: 'move it away; nothing was saved' },
    ])
  if ((await readText(path)) !== source.document)
    throw new CommandError(exits.failed, `${path} was changed meanwhile; nothing was saved`)
  const all = saved.text === source.document ? files : [...files, { path, text: saved.text }]
  try {
    await replaceFiles(all)
  } catch (error) {
    throw new CommandError(exits.failed, `${path} cannot be saved: ${reasonOf(error)}`, { cause: error })
  }
}
