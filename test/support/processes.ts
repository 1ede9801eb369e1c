import { readdirSync, readFileSync } from 'node:fs'

/** A process of this machine (proc(5)); zombies are not listed. */
export interface RunningProcess {
  readonly pid: number
  /** As one line; the name in brackets of a thread of the kernel is not shown. */
  readonly args: string
}

/** All processes, as `ps -eo pid,args` lists them; the smallest systems have no ps. */
export function processes(): RunningProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), args: read(name, 'cmdline').replaceAll('\0', ' ').trim() }))
    .filter(({ args }) => args !== '')
}

/** Those whose arguments contain the text; this one is not among them. */
export const processesWith = (text: string): RunningProcess[] =>
  processes().filter(({ pid, args }) => pid !== process.pid && args.includes(text))

/** Name and state (one letter) of a process. */
export function stateOf(pid: number): { readonly name: string; readonly state: string } {
  const [, name = '', state = ''] = /^\d+ \((.*)\) (\S)/s.exec(read(pid, 'stat')) ?? []
  return { name, state }
}

function read(pid: number | string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    // It has ended.
    return ''
  }
}
