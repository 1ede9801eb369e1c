import { createRequire } from 'node:module'

/** Each connection of a guest is a socket, and has up to 256 KB of buffers in libslirp. */
const maxFiles = 2048
/** sys/resource.h */
const numberOfFiles = 7

/** Limits the descriptors, and with them the connections, that guests can make the process open. */
export function limitFiles(): void {
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')
  const limits = new BigUint64Array([BigInt(maxFiles), BigInt(maxFiles)])
  koffi.load('libc.so.6').func('int setrlimit(int, void *)')(numberOfFiles, limits)
}
