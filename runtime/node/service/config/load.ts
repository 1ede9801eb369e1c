import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Kind, type TSchema } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { parse as parseToml, TomlError } from 'smol-toml'
import { isForbidden, isOwnAddress } from '../../../../src/compute/remote/address.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { nearest } from '../../../../src/lib/text/nearest-word.ts'
import type { Reloaded } from '../../../../src/model/host.ts'
import { aliasIssue } from '../../../../src/model/validation/foreign-words.ts'
import { expectation, formatIssue } from '../../../../src/model/validation/validate.ts'
import { reasonOf } from '../../os/system/error-reason.ts'
import { networkList } from '../http/peer.ts'
import { hasAdminToken } from './admin-token.ts'
import type { Config, Effective, Resolved } from './config.ts'
import { ConfigError } from './config-error.ts'
import { configurationDirectory } from './directory.ts'
import {
  flagOf,
  fromText,
  getAt,
  isSecretSetting,
  type SettingKey,
  setAt,
  settingKeys,
  shownSetting,
  type Tree,
  variableOf,
} from './keys.ts'
import { isLoopbackHost } from './loopback.ts'
import { readSecretFiles, warnOfFlags } from './secrets.ts'
import { Settings } from './settings.ts'

export interface ConfigSources {
  /** Flags, without the command. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Whether the process runs at a terminal. Otherwise flags with secrets are refused. Default: asks the process. */
  readonly isTerminal?: boolean
}

interface Loaded {
  readonly resolved: Resolved
  readonly effective: readonly Effective[]
  readonly warnings: readonly string[]
}
interface Layer {
  readonly values: Tree
  /** The source of a value, for messages. */
  readonly source: (key: string) => string
}

/** Variables with our prefix that are not settings. */
const otherVariables = new Set([
  ...[
    'PATCHBAY_CABLES',
    'PATCHBAY_COMPLETION_WAIT',
    'PATCHBAY_CONFIG',
    'PATCHBAY_ORGANIZATION',
    'PATCHBAY_REQUIRE',
    'PATCHBAY_SERVER',
  ],
])

/** The configuration of this process: flags win over the environment, the file and the defaults. ConfigError when it is not valid. */
export const loadConfig = (sources: ConfigSources): LoadedConfig => new LoadedConfig(sources)

export class LoadedConfig implements Config {
  #current: Resolved
  #effective: readonly Effective[]
  readonly #listeners = new Set<() => void | Promise<void>>()
  /** To be logged at the start of the service. */
  readonly warnings: readonly string[]
  /** The directory of the credentials from systemd (systemd.exec(5)). */
  readonly #credentials: string | undefined
  readonly #flags: Layer
  readonly #environment: Layer
  readonly #file: { readonly path: string; readonly mustExist: boolean }

  constructor({ argv, env, isTerminal = isAtTerminal() }: ConfigSources) {
    const { values, file } = readFlags(argv)
    const ofFlags = warnOfFlags(values, isTerminal)
    this.#credentials = env.CREDENTIALS_DIRECTORY
    this.#flags = { values, source: (key) => `flag --${flagNamed(key)}` }
    this.#environment = {
      values: readEnvironment(env),
      source: (key) => `variable PATCHBAY_${key.replaceAll('.', '_').toUpperCase()}`,
    }
    const named = file ?? env.PATCHBAY_CONFIG
    this.#file = {
      path: named === undefined ? join(configurationDirectory(env), 'config.toml') : resolve(named),
      mustExist: named !== undefined,
    }
    const { resolved, effective, warnings } = this.#load()
    this.#current = resolved
    this.#effective = effective
    this.warnings = [...ofFlags, ...warnings]
  }

  get current(): Resolved {
    return this.#current
  }

  /** The configuration file, where it is not the one of the user. */
  get namedFile(): string | undefined {
    return this.#file.mustExist ? this.#file.path : undefined
  }

  /** Calls and awaits the listener after every reload, until the returned function is called. */
  listen(listener: () => void | Promise<void>): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Every setting with its source, secrets masked. */
  effective(): readonly Effective[] {
    return this.#effective
  }

  async reload(): Promise<Reloaded> {
    let next: Loaded
    try {
      next = this.#load()
    } catch (cause) {
      throw cause instanceof ConfigError
        ? conflict(`The configuration is not valid: ${cause.message}`, { cause })
        : cause
    }
    const changed: string[] = []
    const needs_restart: string[] = []
    const applied = structuredClone(this.#current) as Tree
    for (const { key, path, schema } of settingKeys) {
      const value = getAt(next.resolved as unknown as Tree, path)
      if (JSON.stringify(value) === JSON.stringify(getAt(applied, path))) continue
      const isTlsSwitch = key.startsWith('tls.') && (value === '' || getAt(applied, path) === '')
      if (schema.reload !== true || isTlsSwitch) needs_restart.push(key)
      else {
        changed.push(key)
        setAt(applied, path, value)
      }
    }
    this.#current = applied as unknown as Resolved
    this.#effective = next.effective
    for (const listener of this.#listeners) await listener()
    return { changed, needs_restart }
  }

  #load(): Loaded {
    const { path } = this.#file
    const { values: inFile, lines } = readFile(this.#file)
    const source = (key: string) => (lines.has(key) ? `file ${path}, line ${lines.get(key)}` : `file ${path}`)
    const file: Layer = { values: inFile, source }
    const layers = [this.#flags, this.#environment, file]
    for (const layer of layers) verify(layer)
    const values: Tree = {}
    const sources = new Map<string, string>()
    for (const { key, path: at, schema } of settingKeys) {
      const layer = layers.find((it) => getAt(it.values, at) !== undefined)
      const value = layer === undefined ? structuredClone(schema.default) : getAt(layer.values, at)
      if (value !== undefined) setAt(values, at, value)
      sources.set(key, layer === undefined ? 'default' : layer.source(key))
    }
    const warnings: string[] = []
    for (const { path: at, schema } of settingKeys) {
      const value = getAt(values, at)
      if (schema.fileOf !== undefined && typeof value === 'string' && value !== '') setAt(values, at, absolute(value))
    }
    readSecretFiles(values, { credentials: this.#credentials, sources, warnings })
    const resolved = resolveSettings(values as unknown as Settings)
    const effective = settingKeys.map((it) => {
      const value = getAt(resolved as unknown as Tree, it.path)
      return {
        key: it.key,
        value: isSecretSetting(it) && String(value) !== '' ? '********' : shownSetting(value, it.schema),
        source: sources.get(it.key) ?? '',
      }
    })
    return { resolved, effective, warnings }
  }
}

const isAtTerminal = (): boolean => process.stdin.isTTY === true || process.stdout.isTTY === true

function flagNamed(key: string): string {
  const known = settingKeys.find((it) => it.key === key)
  return known === undefined ? key.replaceAll(/[._]/g, '-') : flagOf(known)
}

/** Throws ConfigError for an unknown key or a wrong value of one layer; the message names the layer. */
function verify({ values, source }: Layer): void {
  const check = (tree: Tree, properties: Record<string, TSchema>, prefix: string) => {
    for (const [name, value] of Object.entries(tree)) {
      const key = prefix + name
      const schema = properties[name]
      if (schema === undefined) {
        const keys = settingKeys.map((setting) => setting.key)
        const guess = nearest(key, keys) ?? nearest(name, keys)
        throw new ConfigError(
          `${source(key)}: ${key}: unknown key${guess === undefined ? ' ("patchbay config" lists the known ones)' : `, did you mean ${guess}?`}`,
        )
      }
      if (schema[Kind] === 'Object' && value !== null && typeof value === 'object' && !Array.isArray(value))
        check(value as Tree, schema.properties as Record<string, TSchema>, `${key}.`)
      else if (!Check(schema, value)) {
        // The message shows no value of a list of secrets.
        const isSecretList = schema.secret === true && schema[Kind] === 'Array'
        const fault = isSecretList ? `${key}: expected ${expectation(schema.items)}` : formatIssue(schema, value, key)
        throw new ConfigError(`${source(key)}: ${fault}`)
      }
    }
  }
  check(values, Settings.properties as Record<string, TSchema>, '')
}

/** The settings in a file, and the line of each key. */
type FromFile = { readonly values: Tree; readonly lines: ReadonlyMap<string, number> }

function readFile({ path, mustExist }: { path: string; mustExist: boolean }): FromFile {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (!mustExist && (error as NodeJS.ErrnoException).code === 'ENOENT') return { values: {}, lines: new Map() }
    throw new ConfigError(`file ${path}: cannot be read: ${reasonOf(error)}`)
  }
  let tree: Tree
  try {
    tree = parseToml(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const { line, column, message } = error
    const fault = (message.split('\n')[0] ?? '').replace(/^Invalid TOML document: /, '')
    const isAtEnd = column > (text.split(/\r?\n/)[line - 1] ?? '').length
    // After a missing quote, the parser complains about the line break.
    const what = isAtEnd && fault.startsWith('control characters') ? 'the closing quote is missing' : fault
    throw new ConfigError(
      `file ${path}, line ${line}, column ${column}: not valid TOML: ${what}\n${lineOf(text, line, column)}`,
    )
  }
  readRanges(tree)
  return { values: tree, lines: linesOf(text) }
}

/** The line of each key, counted from 1. Keys in an unusual notation (quoted, inline tables) are missing. */
function linesOf(text: string): Map<string, number> {
  const lines = new Map<string, number>()
  let table = ''
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\s*\[\s*([\w.-]+)\s*\]/.exec(line)?.[1]
    if (header !== undefined) table = `${header}.`
    const key = header ?? /^\s*([\w.-]+)\s*=/.exec(line)?.[1]
    if (key !== undefined) lines.set(header ?? table + key, index + 1)
  }
  return lines
}

/** The faulty line of a file with a mark below the column; the value of a secret is left out. */
function lineOf(text: string, line: number, column: number): string {
  const content = text.split(/\r?\n/)[line - 1] ?? ''
  const secret = /^(\s*"?[\w.]*(?:password|token)[\w.]*"?\s*=).*/.exec(content)?.[1]
  const number = `  ${line} | `
  if (secret !== undefined) return `${number}${secret} ...`
  return `${number}${content.slice(0, 200)}\n${' '.repeat(number.length + Math.max(0, Math.min(column, 200) - 1))}^`
}

/** Converts ranges that are written as text, such as "5000-10000". */
function readRanges(tree: Tree): void {
  for (const { path, schema } of settingKeys) {
    const value = schema[Kind] === 'Tuple' ? getAt(tree, path) : undefined
    if (typeof value === 'string') setAt(tree, path, fromText(value, schema))
  }
}

function readEnvironment(env: Readonly<Record<string, string | undefined>>): Tree {
  const byName = new Map(settingKeys.map((it) => [variableOf(it), it]))
  const values: Tree = {}
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith('PATCHBAY_') || otherVariables.has(name) || text === undefined) continue
    const key = byName.get(name)
    if (key === undefined) {
      const guess = nearest(name, [...byName.keys()])
      throw new ConfigError(
        `variable ${name}: unknown${guess === undefined ? ' ("patchbay serve --help" explains the names)' : `, did you mean ${guess}?`}`,
      )
    }
    setAt(values, key.path, fromText(text, key.schema))
  }
  return values
}

function readFlags(argv: readonly string[]): { values: Tree; file: string | undefined } {
  const byName = new Map(settingKeys.map((it) => [flagOf(it), it]))
  const typeOf = ({ schema }: SettingKey) => (schema[Kind] === 'Boolean' ? ('boolean' as const) : ('string' as const))
  const flags = Object.fromEntries([...byName].map(([name, key]) => [name, { type: typeOf(key) }]))
  const options = { ...flags, config: { type: 'string' as const } }
  let parsed: Record<string, string | boolean | undefined>
  try {
    const { values } = parseArgs({ args: [...argv], options, allowNegative: true, strict: true })
    parsed = values as Record<string, string | boolean | undefined>
  } catch (error) {
    throw new ConfigError(flagFault(error as Error & { code?: string }, byName))
  }
  const values: Tree = {}
  for (const [name, key] of byName) {
    const value = parsed[name]
    if (value !== undefined) setAt(values, key.path, typeof value === 'string' ? fromText(value, key.schema) : value)
  }
  return { values, file: typeof parsed.config === 'string' ? parsed.config : undefined }
}

/** The error message for the flags, with a hint. */
function flagFault({ code, message }: Error & { code?: string }, byName: ReadonlyMap<string, SettingKey>): string {
  const name = /'(?:-\w, )?--?([\w-]+)/.exec(message)?.[1] ?? ''
  const schema = byName.get(name.replace(/^no-/, ''))?.schema
  const list = '("patchbay serve --help" lists the flags)'
  if (code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') {
    const word = /'([^']*)'/.exec(message)?.[1] ?? ''
    return `${JSON.stringify(word)} is not expected here: a flag begins with --, such as --port 3080 ${list}`
  }
  if (code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE') {
    if (schema?.[Kind] === 'Boolean') return `--${name}: does not take a value; --${name} turns it on, --no-${name} off`
    return `--${name}: a value is missing, expected ${schema === undefined ? 'the path of a file' : expectation(schema)}`
  }
  const guess = schema === undefined ? nearest(name, [...byName.keys(), 'config']) : undefined
  return `--${name}: unknown flag${guess === undefined ? '' : `, did you mean --${guess}?`} ${list}`
}

/** Fills in defaults that depend on other settings; throws ConfigError for settings that contradict each other. */
function resolveSettings(settings: Settings): Resolved {
  const { tls } = settings
  const isLoopback = isLoopbackHost(settings.host)
  const hasUser = settings.user !== '' || settings.password !== ''
  if (hasUser && (settings.user === '' || settings.password === ''))
    throw new ConfigError('user and password: set both, or neither')
  if ((tls.cert === '') !== (tls.key === '')) throw new ConfigError('tls.cert and tls.key: set both, or neither')
  const { team_domain, audience } = settings.cloudflare_access
  if ((team_domain === '') !== (audience === '')) {
    throw new ConfigError('cloudflare_access.team_domain and cloudflare_access.audience: set both, or neither')
  }
  const hasCredentials = hasUser || settings.token !== '' || team_domain !== ''
  if (!isLoopback && !hasCredentials && !settings.insecure && !hasAdminToken(settings.data)) {
    throw new ConfigError(
      `host ${settings.host} is not loopback, and every client of the service can run programs here: set user and password, or token, or start it on loopback and make a token with the role admin first (or insecure, to listen without)`,
    )
  }
  checkRanges(settings)
  for (const name of ['trusted_proxies', 'clients_streams_to'] as const) {
    try {
      networkList(settings[name])
    } catch (error) {
      throw new ConfigError(`${name}: ${(error as Error).message}`)
    }
  }
  checkAliases(settings)
  const join = resolveJoin(settings)
  return {
    ...settings,
    join,
    host: settings.host.replace(/^\[(.*)\]$/, '$1'),
    data: absolute(settings.data),
    tls: { cert: tls.cert && absolute(tls.cert), key: tls.key && absolute(tls.key) },
    additional_images_path: settings.additional_images_path.map(absolute),
    // The clients of a gateway are not people at this machine.
    local: settings.local ?? (isLoopback && join.url === ''),
    console_host: settings.console_host ?? '127.0.0.1',
  }
}

/** Checks join.url: it must be encrypted, and must not contain the token, because logs show the URL. */
function resolveJoin({ join, token, insecure, gateway }: Settings): Settings['join'] {
  for (const address of join.addresses) {
    if (isIP(address) === 0)
      throw new ConfigError(`join.addresses: expected IP addresses, got ${JSON.stringify(address)}`)
    if (isForbidden(address) || isOwnAddress(address))
      throw new ConfigError(`join.addresses: other computes cannot reach this one at ${address}`)
  }
  if (join.url === '') return join
  if (gateway) throw new ConfigError('join.url: a gateway runs no nodes, so it cannot join another one as its compute')
  const url = URL.canParse(join.url) ? new URL(join.url) : undefined
  const protocol = url?.protocol.replace(/^http/, 'ws')
  if (url === undefined || (protocol !== 'ws:' && protocol !== 'wss:'))
    throw new ConfigError('join.url: expected the address of a gateway, such as wss://gateway.example')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new ConfigError('join.url: must not contain a user, query or fragment; the token belongs in join.token')
  if (protocol === 'ws:' && !isLoopbackHost(url.hostname) && !insecure)
    throw new ConfigError('join.url: use wss://, as others could read the token without TLS (insecure allows it)')
  if (join.token === '' && token === '') throw new ConfigError('join.url: also needs join.token, or token')
  return { ...join, token: join.token === '' ? token : join.token }
}

/** Refuses aliases without effect, such as an alias of a word that is in no path. */
function checkAliases({ aliases }: Settings): void {
  for (const [theirs, ours] of Object.entries(aliases)) {
    const fault = aliasIssue(theirs, ours)
    if (fault !== undefined) throw new ConfigError(`aliases.${theirs}: ${fault}`)
  }
}

function checkRanges(settings: Settings): void {
  const keys = ['console_port_range', 'vnc_port_range', 'udp_port_range'] as const
  const ranges = keys.map((key) => ({ key, range: settings[key] }))
  for (const { key, range } of ranges)
    if (range[0] > range[1])
      throw new ConfigError(`${key}: expected the first port before the last, got ${range.join('-')}`)
  for (const [index, a] of ranges.entries()) {
    const other = ranges.slice(index + 1).find((b) => a.range[0] <= b.range[1] && b.range[0] <= a.range[1])
    if (other !== undefined)
      throw new ConfigError(`${a.key} ${a.range.join('-')} and ${other.key} ${other.range.join('-')} overlap`)
  }
}

const absolute = (path: string): string => resolve(path.replace(/^~(?=\/|$)/, () => homedir()))
