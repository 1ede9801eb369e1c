/** Defined by the bundler. */
declare const PATCHBAY_VERSION: string

/** Imported as text, which the bundler does not parse. */
declare module '*/rapidoc-min.js' {
  const script: string
  export default script
}
