import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { missingLine } from './expected.ts'
import { type Block, type Document, parse } from './markdown.ts'
import { prepare } from './prepare.ts'
import { parseSession, runSession } from './session.ts'
import { type Background, Shell, type ShellPlace } from './shell.ts'

const root = join(import.meta.dirname, '../..')
const readyMs = 240_000
const shownMs = 10_000
/** Left out of the copy of the checkout in which a page runs. */
const notCopied = new Set(['.git', 'node_modules', 'coverage', 'guests'])
/** Shown and not run; '' is a picture in letters. */
const shownOnly = new Set(['', 'ini', 'json', 'toml', 'ts', 'yaml'])

export interface PageOptions {
  /** Beside which the page gets directories of its own. */
  readonly directory: string
  /** Settings of every service of the page. */
  readonly env?: NodeJS.ProcessEnv | undefined
}

export interface Count {
  readonly run: number
  /** Left out with a reason. */
  readonly notRun: number
}

/** Runs the commands of a document in order, as a reader on a fresh machine with a checkout. Rejects at the first that fails. */
export async function runPage(file: string, options: PageOptions): Promise<Count> {
  const page = parse(await readFile(join(root, file), 'utf8'))
  const blocks = [...(await before(file, page)), ...page.blocks]
  for (const block of blocks) requireKnown(block)
  const toRun = blocks.filter((it) => it.language === 'sh' && reasonNotToRun(it) === undefined)
  const notRun = page.blocks.filter((it) => reasonNotToRun(it) !== undefined).length
  if (toRun.length === 0) return { run: 0, notRun }
  const place = await makePlace(options, blocks)
  const { HOME: home = '' } = place.env
  const prepared = await prepare[file]?.(place.cwd, home)
  const run = new PageRun({ ...place, env: { ...place.env, ...prepared?.env } })
  try {
    if (!blocks.some(({ mark }) => mark === 'starts the service')) await run.startService()
    for (const [at, block] of blocks.entries()) {
      const { language, content } = blocks[at + 1] ?? { language: '', content: '' }
      try {
        await run.take(block, language === 'text' ? content : '')
      } catch (error) {
        throw new Error(`${file}, the block at line ${block.line}: ${(error as Error).message}`, { cause: error })
      }
    }
  } finally {
    await run.end()
    await prepared?.done?.()
    await rm(place.directory, { recursive: true, force: true })
  }
  return { run: toRun.length, notRun }
}

/** The blocks of the section that the page goes on from. */
async function before(file: string, { continues }: Document): Promise<readonly Block[]> {
  if (continues === undefined) return []
  const [name = '', section] = continues.split('#')
  const other = parse(await readFile(join(root, file, '..', name), 'utf8'))
  const found = other.blocks.filter((block) => block.section === section)
  if (found.length === 0) throw new Error(`${file} continues ${continues}, where there are no commands`)
  return found
}

const reasonNotToRun = ({ mark }: Block): string | undefined => /^not run: (.+)$/.exec(mark ?? '')?.[1]

function requireKnown({ language, mark, line }: Block): void {
  if (!['sh', 'console', 'text'].includes(language) && !shownOnly.has(language))
    throw new Error(`line ${line}: a block is sh, console or text, or one that is only shown; not "${language}"`)
  const known = /^(not run: .+|starts the service|in the background|prepared: .+|continues: \S+|settings:begin)$/
  if (mark !== undefined && !known.test(mark)) throw new Error(`line ${line}: unknown mark "${mark}"`)
}

/** A home and a copy of the checkout, so that what commands leave behind is the page's own. */
async function makePlace({ directory, env }: PageOptions, blocks: readonly Block[]): Promise<ShellPlace> {
  const own = await mkdtemp(join(directory, 'page-'))
  const [cwd, home] = [join(own, 'patchbay'), join(own, 'home')]
  await mkdir(cwd)
  await mkdir(home, { mode: 0o700 })
  for (const name of await readdir(root)) {
    // Of the same age, or the program would be bundled again.
    if (!notCopied.has(name)) await cp(join(root, name), join(cwd, name), { recursive: true, preserveTimestamps: true })
  }
  if (!blocks.some((it) => it.language === 'sh' && /\bnpm ci\b/.test(it.content) && reasonNotToRun(it) === undefined))
    await symlink(join(root, 'node_modules'), join(cwd, 'node_modules'))
  // An error that the service answers is an error of the command.
  await writeFile(join(home, '.curlrc'), 'fail-with-body\nsilent\nshow-error\n')
  const inherited = process.env
  return {
    directory: own,
    cwd,
    env: {
      // The machine's own Node, as a reader has it.
      PATH: (inherited.PATH ?? '')
        .split(delimiter)
        .filter((it) => !it.includes('node_modules'))
        .join(delimiter),
      HOME: home,
      LANG: 'C.UTF-8',
      npm_config_cache: inherited.npm_config_cache ?? join(inherited.HOME ?? '', '.npm'),
      npm_config_prefer_offline: 'true',
      npm_config_update_notifier: 'false',
      npm_config_audit: 'false',
      // What build machines call KVM may boot no guest.
      PATCHBAY_MACHINE_EMULATOR_ACCELERATION: 'tcg',
      ...env,
    },
  }
}

class PageRun {
  readonly #place: ShellPlace
  readonly #shell: Shell
  readonly #running: Background[] = []

  constructor(place: ShellPlace) {
    this.#place = place
    this.#shell = new Shell(place)
  }

  /** The service that a page finds: the built program, run by the machine's own Node. */
  async startService(): Promise<void> {
    await this.#leave('node dist/patchbay.js serve')
  }

  async take(block: Block, expected: string): Promise<void> {
    if (reasonNotToRun(block) !== undefined) return
    if (block.language === 'console') return runSession(parseSession(block.content), this.#place)
    if (block.language !== 'sh') return
    if (block.mark === 'starts the service' || block.mark === 'in the background') {
      const program = await this.#leave(block.content)
      await program.output.until((text) => missingLine(expected, text) === undefined, shownMs)
      return
    }
    const shown = await this.#shell.run(block.content)
    const missing = missingLine(expected, shown)
    if (missing !== undefined) throw new Error(`"${missing}" is not in:\n${shown}`)
  }

  async #leave(commands: string): Promise<Background> {
    const program = await this.#shell.background(commands)
    this.#running.push(program)
    await program.output.until((text) => /\bis ready on\b/.test(text), readyMs)
    return program
  }

  async end(): Promise<void> {
    await this.#shell.close()
    for (const program of this.#running.reverse()) await program.end()
  }
}
