/** Put in by the bundler. */
declare const PATCHBAY_VERSION: string

/** As text: the bundler does not look into it. */
declare module '*/rapidoc-min.js' {
  const script: string
  export default script
}
