import { KeeperError } from '../../keeper/protocol/error.ts'
import type { KeeperErrorCode } from '../../keeper/protocol/protocol.ts'
import { type Libc, linux } from '../../os/system/libc.ts'
import { Memory } from './memory.ts'

const bytes = 512
/** Offset of the value in a struct ifreq. */
export const requestValue = 16

/** Memory for the arguments of one system call at a time. */
export class Scratch extends Memory {
  constructor(libc: Libc) {
    super(libc, bytes)
  }

  clear(length: number): void {
    this.bytes.fill(0, 0, length)
  }

  /** Writes a C string. */
  text(text: string, offset = 0): void {
    const { written } = new TextEncoder().encodeInto(text, this.bytes.subarray(offset, offset + 254))
    this.bytes[offset + written] = 0
  }

  /** Writes a struct ifreq { char name[16]; union { short flags; int value; ... }; } */
  request(device: string, value: number): void {
    this.clear(40)
    this.text(device)
    this.u32(requestValue, value)
  }
}

/** The error of the last system call, with what was to be done. */
export function callError(libc: Libc, code: KeeperErrorCode, message: string): KeeperError {
  const errno = libc.errno()
  return new KeeperError(code, `${message}: ${reasons[errno] ?? `errno ${errno}`}`)
}

/** The error of the last system call on a device; `hint`: how the user gets the right to use it. */
export function deviceError(libc: Libc, device: string, capability: string, hint = grant(capability)): KeeperError {
  const errno = libc.errno()
  if (errno === linux.EPERM || errno === linux.EACCES)
    return new KeeperError('no_privilege', `${device} may not be used by this process: ${hint}`)
  if (errno === linux.EBUSY) return new KeeperError('port_taken', `${device} is in use by another program or link`)
  if (errno === linux.EINVAL) return new KeeperError('bad_request', `${device} is not a TAP device with one queue`)
  return callError(libc, 'bad_request', `${device} cannot be used`)
}

const reasons: Readonly<Record<number, string>> = {
  [linux.EADDRINUSE]: 'it is in use',
  [linux.EADDRNOTAVAIL]: 'this host does not have the address',
  [linux.EACCES]: 'permission denied',
  [linux.EPERM]: 'permission denied',
  101: 'the network is unreachable',
  113: 'no route to the host',
  24: 'too many open files',
  97: 'the address family is not supported here',
}

export const grant = (capability: string): string =>
  `grant it with: sudo setcap ${capability}+ep "$(readlink -f "$(command -v node)")"`
