import { type ChildProcess, execFile, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import type { HostedCommand } from './command-host.ts'
import { endsWithUs } from './ends-with-us.ts'
import { hangMs } from './limits.ts'
import { portRanges } from './ports.ts'
import { processesWith } from './processes.ts'
import { bundledProgram } from './service.ts'

/** What a command printed, and its exit code. */
export interface Printed {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Has its output as a file descriptor, or does not end. */
const needProcess = ['capture', 'serve']

/** The process that runs the commands of this one, and the command that it runs. A process for each command is 0.3 s of a processor. */
let host: { readonly child: ChildProcess; readonly program: string; isBusy: boolean } | undefined

/** Runs a command by the host. */
async function hosted(command: Omit<HostedCommand, 'program'>): Promise<Printed> {
  const program = bundledProgram()
  if (host === undefined || host.program !== program || !host.child.connected) {
    if (host?.child.connected) host.child.disconnect()
    const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] as const
    const child = fork(join(dirname(program), 'command-host.js'), { stdio: [...stdio], execArgv: [] })
    child.unref()
    child.channel?.unref()
    host = { child, program, isBusy: false }
  }
  const its = host
  its.isBusy = true
  const hang = setTimeout(() => its.child.kill('SIGKILL'), hangMs)
  try {
    its.child.send({ ...command, program })
    return await new Promise<Printed>((resolve) => {
      its.child.once('message', (printed) => resolve(printed as Printed))
      its.child.once('exit', (code) => resolve({ code, out: '', err: 'the process of the command ended' }))
    })
  } finally {
    clearTimeout(hang)
    its.child.removeAllListeners('message').removeAllListeners('exit')
    its.isBusy = false
  }
}

/** The commands of one user, with a home directory and a data directory of their own. */
export class CommandLine {
  /** The home directory, which is also the working directory of the commands. */
  readonly home: string
  readonly #env: NodeJS.ProcessEnv

  private constructor(home: string, env: NodeJS.ProcessEnv) {
    this.home = home
    this.#env = env
  }

  /** `server`: the service that the commands ask; without it they ask the own service of the user, which ends with the test. */
  static async of({ server, token }: { server?: string; token?: string } = {}): Promise<CommandLine> {
    const home = await mkdtemp(join(tmpdir(), 'patchbay-home-'))
    const data = join(home, 'data')
    const { PATCHBAY_SERVER: _, PATCHBAY_TOKEN: __, ...inherited } = process.env
    const env = {
      ...inherited,
      // Where a CI system says its name, a colour library may colour pipes, too: no command of ours does.
      CI: 'true',
      HOME: home,
      XDG_CONFIG_HOME: join(home, 'config'),
      ...(server === undefined
        ? { PATCHBAY_DATA: data, PATCHBAY_PORT: '0', ...rangesAsVariables() }
        : { PATCHBAY_SERVER: server }),
      ...(token !== undefined && { PATCHBAY_TOKEN: token }),
    }
    const commands = new CommandLine(home, env)
    onTestFinished(async () => {
      if (server === undefined) await commands.#end(data)
      await rm(home, { recursive: true, force: true })
    })
    if (server === undefined) endsWithUs(data)
    return commands
  }

  get data(): string {
    return join(this.home, 'data')
  }

  /** Writes a file into the working directory; returns its name. */
  async file(name: string, text: string): Promise<string> {
    await writeFile(join(this.home, name), text)
    return name
  }

  /** Runs a command to its end, beside others of the test in a process of its own. */
  run(
    argv: readonly string[],
    { input = '', env = {} }: { input?: string; env?: NodeJS.ProcessEnv } = {},
  ): Promise<Printed> {
    if (host?.isBusy === true || needProcess.includes(argv[0] ?? '')) return this.runProgram(argv, { input, env })
    return hosted({ argv, input, env: { ...this.#env, ...env }, cwd: this.home })
  }

  /** The same in a process of its own in any case, as a shell does it. `to`: the file that its output goes to. */
  runProgram(
    argv: readonly string[],
    { input = '', env = {}, to }: { input?: string; env?: NodeJS.ProcessEnv; to?: string } = {},
  ): Promise<Printed> {
    const words = [process.execPath, bundledProgram(), ...argv]
    const shell = ['/bin/sh', '-c', 'to=$1; shift; exec "$@" > "$to"', 'sh']
    const [program = '', ...rest] = to === undefined ? words : [...shell, to, ...words]
    return new Promise((resolve) => {
      const child = execFile(
        program,
        rest,
        { env: { ...this.#env, ...env }, cwd: this.home, timeout: hangMs },
        (_, out, err) => resolve({ code: child.exitCode, out, err }),
      )
      child.stdin?.end(input)
    })
  }

  /** Runs a script by a shell that has `patchbay` as a command. */
  async inShell(shell: string, script: string): Promise<Printed> {
    return new Promise((resolve) => {
      const child = this.#inShell(shell, script, '', (out, err) => resolve({ code: child.exitCode, out, err }))
    })
  }

  /** `argument`: `$0` of the script. */
  #inShell(
    shell: string,
    script: string,
    argument = '',
    done: (out: string, err: string) => void = () => {},
  ): ChildProcess {
    const bin = join(this.home, 'bin')
    if (!existsSync(bin)) {
      mkdirSync(bin)
      const program = `#!/bin/sh\nexec "${process.execPath}" "${bundledProgram()}" "$@"\n`
      // At once: a file is "busy" as long as a process has it open for writing, and one that is started just then inherits it.
      writeFileSync(join(bin, 'patchbay'), program, { mode: 0o755 })
    }
    const env = { ...this.#env, PATH: `${bin}:${this.#env.PATH}` }
    return execFile(shell, ['-c', script, argument], { env, cwd: this.home, timeout: hangMs }, (_, out, err) =>
      done(out, err),
    )
  }

  /** Starts commands of a shell on a terminal, which a person types on. */
  startOnTerminal(commands: string): {
    type(text: string): void
    shows(text: string): Promise<void>
    ended(): Promise<string>
  } {
    const child = this.#inShell('sh', 'exec script -qec "stty columns 80; $0" /dev/null', commands)
    let shown = ''
    const watchers = new Set<() => void>()
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (text: string) => {
        shown += text
        for (const watcher of watchers) watcher()
      })
    const over = once(child, 'close')
    return {
      type: (text) => void child.stdin?.write(text),
      shows: (text) =>
        new Promise((resolve, reject) => {
          const look = () => shown.includes(text) && resolve()
          watchers.add(look)
          look()
          void over.then(() => reject(new Error(`It ended without ${text}:\n${shown}`)))
        }),
      ended: () => over.then(() => shown),
    }
  }

  /** Runs a command with `--json`, and gives its object. */
  async json<T>(argv: readonly string[]): Promise<T & { ok: boolean; exit: number }> {
    const { out, err } = await this.run([...argv, '--json'])
    if (out === '') throw new Error(`patchbay ${argv.join(' ')} printed nothing: ${err}`)
    return JSON.parse(out) as T & { ok: boolean; exit: number }
  }

  /** Starts a command that goes on. */
  start(argv: readonly string[]) {
    const child = spawn(process.execPath, [bundledProgram(), ...argv], { env: this.#env, cwd: this.home })
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }

  /** Ends the own service, and what it left running: a service that is asked to takes that over, and stops it. */
  async #end(data: string): Promise<void> {
    if (processesWith(data).length === 0) return
    await this.run(['service', 'stop'])
    if (processesWith(data).length === 0) return
    const last = this.start(['serve', '--data', data, '--on-exit', 'stop', '--log-level', 'silent'])
    for await (const line of createInterface({ input: last.stdout })) if (line.includes('is ready')) break
    last.kill('SIGTERM')
    await once(last, 'exit')
  }
}

export const rangesAsVariables = (): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(portRanges()).map(([key, [first, last]]) => [`PATCHBAY_${key.toUpperCase()}`, `${first}-${last}`]),
  )
