/**
 * What `use` makes of the value: now, or when the promise of it resolves. For paths of every request, where the value is usually at hand: a promise that
 * is awaited takes workerd 1 to 3 us.
 */
export const thenSync = <T, U>(value: T | Promise<T>, use: (value: T) => U | Promise<U>): U | Promise<U> =>
  value instanceof Promise ? value.then(use) : use(value)
