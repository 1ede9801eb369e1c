/** One instruction of classic BPF, as in `struct sock_filter`. */
export type BpfInstruction = readonly [code: number, jt: number, jf: number, k: number]

/** A classic BPF program. Plain numbers, so that it can travel as JSON. */
export type BpfProgram = readonly BpfInstruction[]
