import { spawn } from 'node:child_process'
import { closeSync, writeSync } from 'node:fs'
import { ReadStream } from 'node:tty'
import { expect, it, onTestFinished } from 'vitest'
import { EchoFilter } from '../../../../runtime/node/engine/nodes/console-echo.ts'
import { ConsoleSearch, compiled } from '../../../../runtime/node/engine/nodes/console-search.ts'
import { openPty } from '../../../../runtime/node/os/system/pty.ts'
import { hangMs } from '../../../support/limits.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

const columns = 80
const prompt = 'host# '

/** A shell on a terminal of 80 columns. */
async function shellOn(term: string, command: string) {
  const { master, slave } = openPty()
  const terminal = new ReadStream(master)
  const shell = spawn('setsid', ['-c', 'sh', '-c', `stty sane cols ${columns}; PS1='${prompt}' exec ${command}`], {
    env: { PATH: process.env.PATH, TERM: term, HOME: '/' },
    stdio: [slave, slave, slave],
    detached: true,
  })
  closeSync(slave)
  onTestFinished(() => {
    shell.kill('SIGKILL')
    terminal.destroy()
  })
  let output = ''
  let wake = () => {}
  terminal.on('error', () => {})
  terminal.on('data', (bytes) => {
    output += bytes.toString('latin1')
    wake()
  })
  const until = async (isThere: () => boolean) => {
    const late = AbortSignal.timeout(hangMs)
    while (!isThere()) {
      if (late.aborted) throw new Error(`the terminal showed ${JSON.stringify(output)}`)
      await new Promise<void>((resolve) => {
        wake = resolve
        late.onabort = () => resolve()
      })
    }
  }
  const isAtPrompt = () => /host# (?:.\[6n)?$/.test(output)
  await until(isAtPrompt)
  /** Types a line, in one piece or by characters, and gives what the terminal shows up to the next prompt. */
  return async (line: string, isSlow: boolean): Promise<string> => {
    output = ''
    for (const piece of isSlow ? line : [line]) {
      const before = output.length
      writeSync(master, piece)
      if (isSlow) await until(() => output.length > before)
    }
    writeSync(master, '\r')
    await until(isAtPrompt)
    return output
  }
}

/** Whether an expression is found in output that is no echo of a line, at any moment of its arrival. */
async function found(line: string, wanted: string, output: string): Promise<boolean> {
  const search = new ConsoleSearch(await compiled('expect', wanted), new EchoFilter(`${line}\r`))
  // Escape sequences, characters and echoes may be cut anywhere.
  for (const byte of new TextEncoder().encode(output)) {
    search.push(Uint8Array.of(byte))
    while (!search.isSearched) if (search.next() !== undefined) return true
  }
  return false
}

/** Lines that end before, at and behind the end of the screen, and one of three rows. */
const lines = [10, columns - 1, columns, columns + 1, columns + 30, 3 * columns - 5].map((end) => {
  const rest = ' | sed s/no/ANSWER/ # 10.0.0.1 a|b'
  const length = Math.max(1, end - prompt.length - 'echo no '.length - rest.length)
  return `echo no ${'word '.repeat(60).slice(0, length - 1)}x${rest}`
})

for (const [name, term, program, command] of [
  ['bash at a terminal', 'xterm', 'bash', 'bash --norc --noprofile -i'],
  ['bash at a dumb terminal', 'dumb', 'bash', 'bash --norc --noprofile -i'],
  ['busybox', 'vt100', 'busybox', 'busybox sh'],
] as const)
  testWith(requireProgram(program))(`a check finds the echo of ${name}, wherever it is broken`, async () => {
    const typed = await shellOn(term, command)
    for (const line of lines)
      for (const isSlow of [false, true]) {
        const output = await typed(line, isSlow)
        expect(await found(line, '^ANSWER ', output), JSON.stringify(output)).toBe(true)
        // The line itself, which is an echo in several pieces, is no answer: the first time, and when it is shown again.
        for (const shown of [output, `${prompt}${output}${prompt}${output}`]) {
          expect(await found(line, 'echo no|10\\.0\\.0\\.1 a', shown), JSON.stringify(shown)).toBe(false)
          expect(await found(line, '^ANSWER ', shown)).toBe(true)
        }
      }
  })

it('the end of a line is no echo when it also occurs earlier in the line', async () => {
  const line = 'ping 10.0.0.1 -c 1; ping 10.0.0.1 -c 1'
  const [half, rest] = [line.slice(0, 19), line.slice(19)]
  expect(await found(line, 'ping', `${half}\r\n${rest}\r\nno answer\r\n`)).toBe(false)
  expect(await found(line, 'no', `${half}\r\n${rest}\r\nno answer\r\n`)).toBe(true)
})

it('a second echo is no answer: that of the shell after that of the terminal, or that of an earlier attempt', async () => {
  const line = 'show ip ospf neighbor'
  const busy = `${line}\r\n% wait\r\nR1#${line}\r\nNeighbor 10.0.0.2 FULL\r\nR1#${line}\r\nR1#`
  expect(await found(line, 'ospf|ip|show', busy)).toBe(false)
  for (const answer of ['FULL', '^% wait$', '^R1#$', 'Neighbor.*\\n'])
    expect(await found(line, answer, busy)).toBe(true)
})

it('output that resembles the line is an answer when it cannot be an echo', async () => {
  expect(await found('ls', '^tools# ', 'tools# ls\r\nbin\r\ntools# ')).toBe(true)
  expect(await found('show', 'packets', '#show\r\n3 packets\r\n')).toBe(true)
  expect(await found('ping 10.0.0.1', 'ping 10', '>ping 10.0.0.1\r\nping 10.0.0.2 is what you mean\r\n')).toBe(true)
  expect(await found('', '^>', 'before\r\n>')).toBe(true)
})

it('output before the first echo is no answer', async () => {
  expect(await found('version', 'booted', 'booted\r\n>version\r\n1.0\r\n')).toBe(false)
  expect(await found('version', '1.0', '1.0 booted\r\n>')).toBe(false)
})

it('without an echo, all output is the answer when the console is quiet', () => {
  const unmatched = (line: string, output: string) => {
    const search = new ConsoleSearch(undefined, new EchoFilter(`${line}\r`))
    search.push(Buffer.from(output))
    return search.unmatched.before
  }
  // As for a password, or of a program that reads without a terminal.
  expect(unmatched('secret', '\r\nLast login: today\r\n$ ')).toBe('\nLast login: today\n$ ')
  expect(unmatched('show', '#show\r\n3 packets\r\nsh')).toBe('3 packets\nsh')
  expect(unmatched('show', 'x'.repeat(100_000))).toHaveLength(64 * 1024)
})
