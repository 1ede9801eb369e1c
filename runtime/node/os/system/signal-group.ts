/** Signals the process group of a leader, which the keeper must not have reaped yet. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal)
  } catch (error) {
    // The group has ended, or its remaining processes run as another user (kill(2)).
    if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}
