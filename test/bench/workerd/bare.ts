/** Paths of the Workers beside the gateway's, which do nothing but hand on: the path at the compute follows. */
export const barePaths = { worker: '/bare-worker', object: '/bare-object' } as const
