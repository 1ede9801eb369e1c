import { accessSync, constants } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { conflict } from '../../../../../src/lib/errors/api-error.ts'

/** The address of a libvirt daemon. */
export interface LibvirtUri {
  /** The URI for the daemon. */
  readonly uri: string
  /** UNIX sockets, tried in order. */
  readonly sockets: readonly string[]
  /** Whether the daemon belongs to the user, and is started on demand. */
  readonly isSession: boolean
}

const systemDirectories = ['/run/libvirt', '/var/run/libvirt']
/** Sockets of the modular daemon (virtqemud) and of the monolithic one (libvirtd). */
const socketNames = ['virtqemud-sock', 'libvirt-sock']

/** Parses a libvirt URI; 409 unless it means QEMU on this machine over a UNIX socket. */
export function addressOf(text: string): LibvirtUri {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const [driver, transport = 'unix'] = url?.protocol.slice(0, -1).split('+') ?? []
  if (url === undefined || driver !== 'qemu')
    throw conflict(`The libvirt URI "${text}" is not a QEMU URI: it must be qemu:///system or qemu:///session`)
  if (transport !== 'unix' || url.host !== '')
    throw conflict(`The libvirt URI "${text}" points to another machine; only the libvirt of this machine can be used`)
  if (url.pathname !== '/system' && url.pathname !== '/session')
    throw conflict(`The libvirt URI "${text}" must be qemu:///system or qemu:///session`)
  const isSession = url.pathname === '/session'
  const uri = `qemu://${url.pathname}`
  const socket = url.searchParams.get('socket')
  if (socket !== null) return { uri, sockets: [socket], isSession: false }
  if (!isSession) return { uri, sockets: socketsIn(systemDirectories), isSession }
  if (process.getuid?.() === 0)
    throw conflict('root has no libvirt session: set hypervisor.libvirt_uri to qemu:///system')
  return { uri, sockets: socketsIn([sessionDirectory()]), isSession }
}

const socketsIn = (directories: readonly string[]): string[] =>
  socketNames.flatMap((name) => directories.map((directory) => join(directory, name)))

function sessionDirectory(): string {
  const { XDG_RUNTIME_DIR, XDG_CACHE_HOME } = process.env
  return join(XDG_RUNTIME_DIR || XDG_CACHE_HOME || join(homedir(), '.cache'), 'libvirt')
}

/** The system's libvirt if this user may use its socket, else the user's own. */
export function defaultUri(): string {
  const isUsable = process.getuid?.() === 0 || socketsIn(systemDirectories).some(mayUse)
  return isUsable ? 'qemu:///system' : 'qemu:///session'
}

function mayUse(socket: string): boolean {
  try {
    accessSync(socket, constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}
