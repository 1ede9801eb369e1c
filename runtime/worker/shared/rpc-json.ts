declare const content: unique symbol

/** The JSON text of a `T`, as an argument or a result of a call between objects. */
export type Encoded<T> = string & { readonly [content]: T }

export const encode = <T>(value: T): Encoded<T> => JSON.stringify(value) as Encoded<T>

export const decode = <T>(text: Encoded<T>): T => JSON.parse(text) as T
