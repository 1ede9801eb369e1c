/** The reason alone, for a list of parts that are left out. */
export const withoutVerdict = (message: string): string => message.replace(/^is not imported(: )?/, '')
