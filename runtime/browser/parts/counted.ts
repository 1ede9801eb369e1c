/** A number of things, such as `1 frame` and `2,000 frames`. The first format of the page takes 5 ms: small ones need none. */
export const counted = (number: number, noun: string): string =>
  `${number < 1000 ? number : number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`
