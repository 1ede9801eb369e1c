import type { LabCheck } from '../model/lab/task.ts'
import { checkWithNames } from './checks.ts'
import type { Desired, DesiredEnd, DesiredNode } from './desired.ts'
import { documentOf, escaped } from './document.ts'
import { editedLabFile, isMap, type LabFileEdit, type Path, valueAt } from './edit.ts'
import { nodeIdOf } from './ids.ts'
import { keyOf } from './names.ts'
import { taskEdits } from './task-edits.ts'

/** A lab file whose nodes have got other names. */
export interface RenamedLabFile {
  readonly text: string
  readonly desired: Desired
}

/** A node of a lab that has another name there than in the file. */
export interface RenamedNode {
  readonly name: string
  readonly node_id: string
}

/**
 * Gives nodes and segments of a file the names that they have in the lab: their keys, and all that names them: links, members, `after`,
 * checks, and tasks whose checks are named after nodes. `was` keeps the name from which the id of the node is derived: other labs of the file have the node by this id.
 * `raw`: the file as data. `renamed`: by the names in the file; the new names are unique without regard to case.
 */
export function renamedLabFile(
  text: string,
  desired: Desired,
  raw: unknown,
  renamed: ReadonlyMap<string, RenamedNode>,
): RenamedLabFile {
  if (renamed.size === 0) return { text, desired }
  const after = withNames(desired, new Map([...renamed].map(([old, { name }]) => [old, name])))
  return { text: editedLabFile(text, new RenameEdits(desired, after, raw, renamed).all()), desired: after }
}

/** The same lab with other names of nodes. */
export function withNames(desired: Desired, names: ReadonlyMap<string, string>): Desired {
  const of = (name: string): string => names.get(name) ?? name
  const end = (it: DesiredEnd): DesiredEnd => ({ ...it, node: of(it.node) })
  const checks = desired.checks.map((check) => checkWithNames(check, of))
  const checkNames = new Map(desired.checks.map(({ name }, index) => [name, checks[index]?.name ?? name]))
  return {
    ...desired,
    ...(desired.management !== undefined && { management: of(desired.management) }),
    nodes: desired.nodes.map((node) => ({ ...node, name: of(node.name), after: node.after.map(of) })),
    links: desired.links.map((link) => ({
      ...link,
      ends: [end(link.ends[0]), end(link.ends[1])],
      ...(link.memberOf !== undefined && { memberOf: of(link.memberOf) }),
    })),
    checks,
    ...(desired.tasks !== undefined && {
      tasks: desired.tasks.map((task) => ({
        ...task,
        checks: task.checks.map((name) => checkNames.get(name) ?? name),
      })),
    }),
  }
}

/** The edits of a file whose nodes get other names. */
class RenameEdits {
  readonly #before: Desired
  readonly #after: Desired
  readonly #raw: unknown
  readonly #renamed: ReadonlyMap<string, RenamedNode>
  /** The new names, by the keys of the old ones. */
  readonly #names: ReadonlyMap<string, string>

  constructor(before: Desired, after: Desired, raw: unknown, renamed: ReadonlyMap<string, RenamedNode>) {
    this.#before = before
    this.#after = after
    this.#raw = raw
    this.#renamed = renamed
    this.#names = new Map([...renamed].map(([old, { name }]) => [keyOf(old), name]))
  }

  all(): LabFileEdit[] {
    return [
      ...this.#before.nodes.flatMap((node) => this.#node(node)),
      ...this.#templates(),
      ...this.#links(),
      ...this.#checks(),
      ...this.#tasks(),
    ]
  }

  #node(node: DesiredNode): LabFileEdit[] {
    if (node.name === this.#before.management) return this.#network(node)
    const path = [node.segment === undefined ? 'nodes' : 'segments', node.name]
    const written = valueAt(this.#raw, path)
    const renamed = this.#renamed.get(node.name)
    const was = renamed && this.#wasOf(node, renamed)
    const own = isMap(written) ? written.after : undefined
    const after = this.#after.nodes[this.#before.nodes.indexOf(node)]?.after ?? []
    const isChanged = after.some((it, index) => it !== node.after[index])
    const isOfVariable = own === undefined && isChanged && this.#isOfVariable(node)
    return [
      ...(renamed === undefined ? [] : [{ path, key: renamed.name }]),
      ...(was === undefined ? [] : [{ path: [...path, 'was'], value: escaped(was) }]),
      ...(Array.isArray(own)
        ? node.after.flatMap((it, index) =>
            it === after[index] ? [] : [{ path: [...path, 'after', index], value: escaped(after[index] ?? it) }],
          )
        : []),
      ...(isOfVariable ? [{ path: [...path, 'after'], value: after.map(escaped) }] : []),
    ]
  }

  /** The name of the management network. */
  #network(node: DesiredNode): LabFileEdit[] {
    const renamed = this.#renamed.get(node.name)
    if (renamed === undefined) return []
    const was = this.#wasOf(node, renamed)
    return [
      { path: ['management', 'name'], value: escaped(renamed.name) },
      ...(was === undefined ? [] : [{ path: ['management', 'was'], value: escaped(was) }]),
    ]
  }

  /** Whether the list of a template that a node takes over names nodes by variables. */
  #isOfVariable({ after }: DesiredNode): boolean {
    const known = new Set(this.#lists().flatMap(({ list }) => list.map((entry) => keyOf(String(entry)))))
    return after.some((it) => this.#renamed.has(it) && !known.has(keyOf(it)))
  }

  /** The name that the node had when it was made, for `was`; undefined: the file has it already, or must not have it. */
  #wasOf({ name, was }: DesiredNode, { name: next, node_id }: RenamedNode): string | undefined {
    const { lab, nodes } = this.#after
    const original = was !== undefined && nodeIdOf(lab, was) === node_id ? was : name
    const isOfOther = nodes.some((it) => keyOf(it.name) === keyOf(original))
    return original === was || isOfOther || keyOf(next) === keyOf(original) ? undefined : original
  }

  /** The lists `after` of templates. */
  #lists(): { path: Path; list: readonly unknown[] }[] {
    const templates = valueAt(this.#raw, ['templates'])
    if (!isMap(templates)) return []
    return Object.entries(templates).flatMap(([name, it]) =>
      isMap(it) && Array.isArray(it.after) ? [{ path: ['templates', name, 'after'], list: it.after }] : [],
    )
  }

  #templates(): LabFileEdit[] {
    return this.#lists().flatMap(({ path, list }) =>
      list.flatMap((entry, index) => {
        const name = this.#names.get(keyOf(String(entry)))
        return name === undefined ? [] : [{ path: [...path, index], value: escaped(name) }]
      }),
    )
  }

  #links(): LabFileEdit[] {
    const { links = [], segments = {} } = documentOf(this.#after)
    const numbers = new Map<string | undefined, number>()
    return this.#before.links.flatMap((link, index): LabFileEdit[] => {
      if (link.isManagement === true) return []
      const number = numbers.get(link.memberOf) ?? 0
      numbers.set(link.memberOf, number + 1)
      const isOther = (end: DesiredEnd) => this.#renamed.has(end.node)
      const segment = this.#after.links[index]?.memberOf
      if (link.memberOf !== undefined && segment !== undefined) {
        if (!isOther(link.ends[0])) return []
        const members = segments[segment]?.members as unknown[] | undefined
        const path = ['segments', link.memberOf, 'members', number]
        const next = members?.[number]
        const end = isMap(next) ? next.end : next
        const written = valueAt(this.#raw, path)
        return isMap(written)
          ? [{ path: [...path, 'end'], value: this.#end(written.end, link.ends[0], end) }]
          : [{ path, value: this.#end(written, link.ends[0], end) }]
      }
      if (!link.ends.some(isOther)) return []
      const written = valueAt(this.#raw, ['links', number])
      const next = links[number] as unknown
      const [ends, texts] = [written, next].map((entry) => (isMap(entry) ? entry.ends : entry) as unknown[])
      const all = link.ends.map((end, at) => (isOther(end) ? this.#end(ends?.[at], end, texts?.[at]) : ends?.[at]))
      return [{ path: isMap(written) ? ['links', number, 'ends'] : ['links', number], value: all }]
    })
  }

  /** The text of an end: that of the file with another name, unless a variable is in the name. */
  #end(written: unknown, { node }: DesiredEnd, text: unknown): unknown {
    const word = String(written)
    const rest = word.slice(node.length)
    const isPlain = keyOf(word.slice(0, node.length)) === keyOf(node) && (rest === '' || rest.startsWith(':'))
    return isPlain ? `${escaped(this.#renamed.get(node)?.name ?? node)}${rest}` : text
  }

  #tasks(): LabFileEdit[] {
    const names = new Map(
      this.#before.checks.flatMap(({ name }, index) => {
        const hasOwn = isMap(valueAt(this.#raw, ['checks', index])) && valueAt(this.#raw, ['checks', index, 'name'])
        return typeof hasOwn === 'string' ? [] : [[name, this.#after.checks[index]?.name] as const]
      }),
    )
    return taskEdits(this.#before, names).flatMap(({ edits }) => edits)
  }

  #checks(): LabFileEdit[] {
    return this.#before.checks.flatMap((check, index): LabFileEdit[] => {
      const path: (string | number)[] = ['checks', index]
      let it: LabCheck = check
      for (; it.check === 'not'; it = it.of) path.push('not')
      const words = it.check === 'ping' ? { from: it.from, ping: it.to } : it.check === 'console' ? { on: it.on } : {}
      return Object.entries(words).flatMap(([key, word]) => {
        const name = this.#names.get(keyOf(word))
        return name === undefined ? [] : [{ path: [...path, key], value: escaped(name) }]
      })
    })
  }
}
