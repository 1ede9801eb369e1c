const nothing = (): void => {}

/** Handles a rejection that has no consequence; the reason is for the reader of the code. */
export const ignore = (_reason: string): (() => void) => nothing
