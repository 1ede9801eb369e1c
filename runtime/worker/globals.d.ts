/** Defined by the bundler. */
declare const PATCHBAY_VERSION: string

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
