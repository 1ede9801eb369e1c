import { globalAgent } from 'node:http'
import { Readable, Writable } from 'node:stream'
import { commands } from '../../runtime/node/cli/commands.ts'
import { runCommand } from '../../runtime/node/cli/run.ts'

/** A command, and what its process would have. */
export interface HostedCommand {
  /** The program, which a command may start again as a service. */
  readonly program: string
  readonly argv: readonly string[]
  readonly input: string
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
}

// A program of its own: it runs the commands that it is sent, one after the other, each as if this process were its own.
process.on('message', (command: HostedCommand) => void run(command).then((ended) => process.send?.(ended)))
process.on('disconnect', () => process.exit())

async function run({ program, argv, input, env, cwd }: HostedCommand) {
  process.argv[1] = program
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
  process.chdir(cwd)
  const [out, err] = [textOf('stdout'), textOf('stderr')]
  setStream('stdin', Readable.from(input === '' ? [] : [Buffer.from(input)], { objectMode: false }))
  const code = await runCommand(argv, commands).catch((error: Error) => {
    process.stderr.write(`patchbay: ${error.stack}\n`)
    return 1
  })
  // What ends with a process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(signal)
  globalAgent.destroy()
  process.chdir('/')
  return { code, out: out(), err: err() }
}

/** Collects what is written to a stream of the process. */
function textOf(name: 'stdout' | 'stderr'): () => string {
  const pieces: Buffer[] = []
  setStream(
    name,
    new Writable({
      write(piece: Buffer, _, done) {
        pieces.push(piece)
        done()
      },
    }),
  )
  return () => Buffer.concat(pieces).toString()
}

const setStream = (name: 'stdin' | 'stdout' | 'stderr', value: Readable | Writable): void =>
  void Object.defineProperty(process, name, { value, configurable: true })
