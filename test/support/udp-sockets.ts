import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** A UDP socket of this host, and the program that has it. */
export interface UdpSocketSeen {
  readonly program: string
  readonly port: number
  /** 0: it takes datagrams of every sender. */
  readonly remotePort: number
}

/** The UDP sockets of the processes that name a directory in their arguments, and of what they have started. */
export function udpSocketsOf(directory: string): UdpSocketSeen[] {
  const byInode = new Map([...tableOf('udp'), ...tableOf('udp6')])
  return processesOf(directory).flatMap(({ pid, program }) =>
    inodesOf(pid).flatMap((inode) => {
      const socket = byInode.get(inode)
      return socket === undefined ? [] : [{ program, ...socket }]
    }),
  )
}

/** The rows of proc_net(5): local and remote address with port, in hexadecimal, and the inode as the tenth field. */
function tableOf(name: string): [inode: string, socket: { port: number; remotePort: number }][] {
  const rows = read(`/proc/net/${name}`).trim().split('\n').slice(1)
  return rows.map((row) => {
    const fields = row.trim().split(/\s+/)
    const portIn = (at: number) => Number.parseInt(fields[at]?.split(':')[1] ?? '', 16)
    return [fields[9] ?? '', { port: portIn(1), remotePort: portIn(2) }]
  })
}

function processesOf(directory: string): { pid: string; program: string }[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      const [, program = '', parent = ''] = /^\d+ \((.*)\) \S (\d+)/s.exec(read(`/proc/${pid}/stat`)) ?? []
      return { pid, program, parent, isNamed: read(`/proc/${pid}/cmdline`).includes(directory) }
    })
  const found = new Set(all.filter(({ isNamed }) => isNamed).map(({ pid }) => pid))
  for (let before = 0; before < found.size; ) {
    before = found.size
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid)
  }
  return all.filter(({ pid }) => found.has(pid))
}

function inodesOf(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []
      } catch {
        return []
      }
    })
  } catch {
    return []
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}
