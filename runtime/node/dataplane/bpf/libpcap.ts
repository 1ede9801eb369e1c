import { createRequire } from 'node:module'
import type { BpfInstruction, BpfProgram } from './program.ts'

/** The result of libpcap: a program, or an error message. */
type Compiled = { readonly program: BpfProgram } | { readonly error: string }

/** libpcap's compiler, for one link type (the DLT_ numbers of pcap-linktype(7)). */
export type Compile = (expression: string, linkType: number, optimize: boolean) => Compiled

/** The version in the name differs between distributions; `libpcap.so` belongs to the development package. */
const sonames = ['libpcap.so.1', 'libpcap.so.0.8', 'libpcap.so']

/** PCAP_NETMASK_UNKNOWN: only `ip broadcast` would need it. */
const unknownNetmask = 0xffff_ffff

type Raw = { readonly bf_len: number; readonly bf_insns: bigint | null }

let compile: Compile | undefined

/** The compiler of libpcap, loaded at the first use; undefined when libpcap or koffi is not installed. */
export function loadLibpcap(): Compile | undefined {
  // A failure is not cached: libpcap may be installed while the service runs.
  compile ??= load()
  return compile
}

/** Undefined where it does not load; the doctor says why. */
function loadKoffi(): typeof import('koffi') | undefined {
  try {
    return createRequire(import.meta.url)('koffi')
  } catch {
    return undefined
  }
}

function load(): Compile | undefined {
  const koffi = loadKoffi()
  const library = koffi && firstOf(sonames, koffi.load)
  if (koffi === undefined || library === undefined) return undefined
  const instruction = koffi.struct({ code: 'uint16_t', jt: 'uint8_t', jf: 'uint8_t', k: 'uint32_t' })
  const program = koffi.struct({ bf_len: 'unsigned int', bf_insns: 'void *' })
  const openDead = library.func('void *pcap_open_dead(int linktype, int snaplen)')
  const pcapCompile = library.func('pcap_compile', 'int', [
    'void *',
    koffi.out(koffi.pointer(program)),
    'const char *',
    'int',
    'uint32_t',
  ])
  const freeCode = library.func('pcap_freecode', 'void', [koffi.pointer(program)])
  const getError = library.func('const char *pcap_geterr(void *handle)')
  const close = library.func('void pcap_close(void *handle)')

  return (expression, linkType, optimize) => {
    const handle: unknown = openDead(linkType, 65_535)
    if (handle === null) throw new Error(`libpcap opens no handle for link type ${linkType}`)
    try {
      const raw: Raw = { bf_len: 0, bf_insns: null }
      if (pcapCompile(handle, raw, expression, optimize ? 1 : 0, unknownNetmask) !== 0)
        return { error: String(getError(handle)) }
      try {
        const decoded = koffi.decode(raw.bf_insns, instruction, raw.bf_len) as readonly Instruction[]
        return { program: decoded.map(({ code, jt, jf, k }): BpfInstruction => [code, jt, jf, k]) }
      } finally {
        freeCode(raw)
      }
    } finally {
      close(handle)
    }
  }
}

type Instruction = { readonly code: number; readonly jt: number; readonly jf: number; readonly k: number }

function firstOf<T>(names: readonly string[], open: (name: string) => T): T | undefined {
  for (const name of names) {
    try {
      return open(name)
    } catch {
      // The next name may exist.
    }
  }
  return undefined
}
