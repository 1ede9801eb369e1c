/** One instruction of classic BPF, as in `struct sock_filter`. */
export type BpfInstruction = readonly [code: number, jt: number, jf: number, k: number]

/** A classic BPF program, as plain numbers for JSON. */
export type BpfProgram = readonly BpfInstruction[]
