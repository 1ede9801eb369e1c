const nothing = (): void => {}

/** What is done about a failure that changes nothing for anybody; the reason is for the reader of the code. */
export const ignore = (_reason: string): (() => void) => nothing
