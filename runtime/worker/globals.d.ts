/** Defined by the bundler. */
declare const PATCHBAY_VERSION: string

/** What the flag `nodejs_als` adds, as far as it is used. */
declare module 'node:async_hooks' {
  export class AsyncLocalStorage<T> {
    getStore(): T | undefined
    run<R>(store: T, callback: () => R): R
  }
}

/** Imported as text, which the bundler does not parse. */
declare module '*/rapidoc-min.js' {
  const script: string
  export default script
}

/** The files of the page by name, made by the build. */
declare module '*/page-files.js' {
  const files: Readonly<Record<string, string>>
  export default files
}
