import type { Command, Completion } from './command.ts'
import type { CommandOutcome } from './outcome.ts'

type Table = Readonly<Record<string, Command>>

/** A word that a shell may offer; one that ends in `/` goes on. */
export interface Candidate {
  readonly word: string
  readonly about: string
}

/** What may stand at the end of a line: these words, and names of files. */
export interface Candidates {
  readonly words: readonly Candidate[]
  readonly files: boolean
}

/** Finds names that a service has, which may begin with `word`; none when it does not answer. */
export type Names = (what: Completion, word: string, server: string | undefined) => Promise<readonly Candidate[]>

const none: Candidates = { words: [], files: false }
const helpFlag: Candidate = { word: '--help', about: 'what the command does' }

/** What may stand in the place of the last of the words after `patchbay`. */
export async function candidatesFor(words: readonly string[], commands: Table, names: Names): Promise<Candidates> {
  const word = words.at(-1) ?? ''
  const all = await possible(words, commands, names)
  return { files: all.files, words: all.words.filter((it) => it.word.startsWith(word)) }
}

async function possible(words: readonly string[], commands: Table, names: Names): Promise<Candidates> {
  const listed = Object.entries(commands).filter(([, { hidden = false }]) => !hidden)
  const before = words.slice(0, -1)
  const [first, second] = before
  if (first === undefined) return { words: [...namesOf(listed, 0), helpFlag], files: false }
  const ofTwo = listed.filter(([name]) => name.startsWith(`${first} `))
  const name = [`${first} ${second ?? ''}`, first].find((it) => Object.hasOwn(commands, it))
  if (name === undefined) return second === undefined ? { words: namesOf(ofTwo, 1), files: false } : none
  const command = commands[name] as Command
  const rest = before.slice(name.split(' ').length)
  const own = await ofCommand(command, rest, words.at(-1) ?? '', { commands, names })
  // A command and the first word of others: `help`.
  return second === undefined && ofTwo.length > 0 ? { ...own, words: [...own.words, ...namesOf(ofTwo, 1)] } : own
}

/** The words of names of commands at an index; the first word of several says which they are. */
function namesOf(listed: readonly (readonly [string, Command])[], index: 0 | 1): Candidate[] {
  const found = new Map<string, string>()
  for (const [name, { summary }] of listed) {
    const parts = name.split(' ')
    const word = parts[index]
    if (word === undefined) continue
    const isGroup = parts.length > index + 1
    found.set(word, isGroup ? [found.get(word), parts[index + 1]].filter(Boolean).join(', ') : summary)
  }
  return [...found].map(([word, about]) => ({ word, about }))
}

interface Source {
  readonly commands: Table
  readonly names: Names
}

/** What may stand at `word`, after `before` of the words of a command. */
async function ofCommand(
  { args, flags, settings }: Command,
  before: readonly string[],
  word: string,
  { commands, names }: Source,
): Promise<Candidates> {
  const given = new Map<string, string | undefined>()
  const positional: string[] = []
  let open: string | undefined
  let isFlags = true
  for (const it of before) {
    if (open !== undefined) {
      given.set(open, it)
      open = undefined
    } else if (isFlags && it === '--') isFlags = false
    else if (isFlags && it.startsWith('-') && it !== '-') {
      const [key = '', value] = splitFlag(it)
      const flag = Object.keys(flags).find((name) => `--${name}` === key || `-${flags[name]?.short}` === key)
      if (flag === undefined) continue
      given.set(flag, value)
      if (flags[flag]?.value !== undefined && value === undefined) open = flag
    } else positional.push(it)
  }
  const server = given.get('server')
  const valuesOf = async (
    parameter: { choices?: readonly string[]; complete?: Completion; name?: string },
    text: string,
  ) => {
    if (parameter.choices !== undefined)
      return { words: parameter.choices.map((word) => ({ word, about: '' })), files: false }
    if (parameter.complete === 'command') return { words: namesOf(Object.entries(commands), 0), files: false }
    const isFile = parameter.complete === 'file'
    const found = parameter.complete === undefined || isFile ? [] : await names(parameter.complete, text, server)
    // `LAB/NODE` goes on after the lab, `LAB[/NODE]` may end there.
    const words = parameter.name?.includes('[/')
      ? found.map((name) => ({ ...name, word: name.word.replace(/\/$/, '') }))
      : found
    return { words, files: isFile || parameter.name?.includes('FILE') === true }
  }
  if (open !== undefined) return valuesOf(flags[open] ?? {}, word)
  if (isFlags && word.startsWith('-')) {
    const [key = '', value] = splitFlag(word)
    if (value !== undefined) {
      const { words } = await valuesOf(flags[key.replace(/^--/, '')] ?? {}, value)
      return { words: words.map((it) => ({ ...it, word: `${key}=${it.word}` })), files: false }
    }
    const free = Object.entries(flags).filter(([name, { many = false }]) => many || !given.has(name))
    const own = free.map(([name, { about }]) => ({ word: `--${name}`, about }))
    const more = settings === undefined ? [] : (await import('./setting-flags.ts')).settingWords()
    return { words: [...own, ...more, helpFlag], files: false }
  }
  const arg = args[positional.length] ?? (args.at(-1)?.many ? args.at(-1) : undefined)
  if (arg === undefined) return none
  const [lab = ''] = positional
  if (arg.complete !== 'snapshot' || lab === '') return valuesOf(arg, word)
  // The first word is LAB/SNAPSHOT, so each further word may name a snapshot of any lab.
  if (lab.includes('/')) return arg.many ? valuesOf(arg, word) : none
  // After a lab alone the snapshots of it have no slash.
  const found = await valuesOf(arg, `${lab}/${word}`)
  return { ...found, words: found.words.map((it) => ({ ...it, word: it.word.slice(lab.length + 1) })) }
}

/** `--flag=value` in two. */
function splitFlag(word: string): [string, string?] {
  const equals = word.indexOf('=')
  return equals === -1 ? [word] : [word.slice(0, equals), word.slice(equals + 1)]
}

/** `patchbay complete -- WORD...`: the scripts of the shells run it at each Tab. Never fails: it prints nothing instead. */
export async function complete(words: readonly string[], commands: Table): Promise<CommandOutcome> {
  const { namesOfService } = await import('./completion-names.ts')
  const { words: found, files } = await candidatesFor(words, commands, namesOfService).catch(() => none)
  const lines = found.map(({ word, about }) => `${word}\t${about.replaceAll('\n', ' ')}`)
  return {
    json: { words: found, files },
    isVerbatim: true,
    text: () => [...lines, ...(files ? [':files'] : [])].join('\n'),
  }
}

/** `patchbay completion SHELL`: the script that makes a shell ask `patchbay complete`. */
export const completion = (shell: string): CommandOutcome => ({
  json: { shell, script: scripts[shell as keyof typeof scripts] },
  isVerbatim: true,
  text: () => scripts[shell as keyof typeof scripts],
})

/** Before braces, where a template has a value. */
const dollar = '$'

const scripts = {
  bash: String.raw`# Completion of patchbay for bash. For every new shell: echo 'source <(patchbay completion bash)' >> ~/.bashrc
_patchbay() {
  local line=${dollar}{COMP_LINE:0:COMP_POINT} words word about cut= cur isOpen=
  # With backslashes of blanks in names.
  read -a words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  cur=${dollar}{words[${dollar}{#words[@]}-1]}
  # Bash completes what follows the last colon or equals sign only.
  [[ $COMP_WORDBREAKS == *:* && $cur == *:* ]] && cut=${dollar}{cur%"${dollar}{cur##*:}"}
  [[ $COMP_WORDBREAKS == *=* && $cur == *=* && ${dollar}{cur##*=} != *:* ]] && cut=${dollar}{cur%"${dollar}{cur##*=}"}
  COMPREPLY=()
  while IFS=$'\t' read -r word about; do
    if [[ $word == :files ]]; then
      compopt -o filenames 2> /dev/null
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")
      continue
    fi
    [[ $word == */ ]] && isOpen=yes
    printf -v word %q "${dollar}{word#"$cut"}"
    COMPREPLY+=("$word")
  done < <("${dollar}{words[0]}" complete -- "${dollar}{words[@]:1}" 2> /dev/null)
  [[ -n $isOpen ]] && compopt -o nospace 2> /dev/null
}
complete -F _patchbay patchbay`,
  zsh: String.raw`#compdef patchbay
# Completion of patchbay for zsh. For every new shell: echo 'source <(patchbay completion zsh)' >> ~/.zshrc (after compinit)
_patchbay() {
  local word about files=
  local -a whole open given
  given=("${dollar}{(@Q)words[1,CURRENT]}")
  while IFS=$'\t' read -r word about; do
    if [[ $word == :files ]]; then files=yes
    elif [[ $word == */ ]]; then open+=("${dollar}{word//:/\\:}:$about")
    else whole+=("${dollar}{word//:/\\:}:$about")
    fi
  done < <("${dollar}{given[1]}" complete -- "${dollar}{(@)given[2,-1]}" 2> /dev/null)
  (( $#whole )) && _describe -t words patchbay whole
  (( $#open )) && _describe -t labs patchbay open -S ''
  [[ -n $files ]] && _files
}
if [[ $funcstack[1] == _patchbay ]]; then _patchbay "$@"; else compdef _patchbay patchbay; fi`,
  fish: `# Completion of patchbay for fish. For every new shell: patchbay completion fish > ~/.config/fish/completions/patchbay.fish
function __patchbay_complete
    set -l given (commandline -opc)
    set -l word (commandline -ct | string unescape)
    for line in ($given[1] complete -- $given[2..-1] "$word" 2> /dev/null)
        if test "$line" = :files
            __fish_complete_path "$word"
        else
            echo $line
        end
    end
end
complete -c patchbay -f -a '(__patchbay_complete)'`,
} as const
