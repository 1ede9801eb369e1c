/** A number of things in a message: `1 node`, `2 nodes`. */
export const counted = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`
