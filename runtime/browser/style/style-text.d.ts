declare module '*.css' {
  /** The style sheet, for `with { type: 'text' }`. */
  const text: string
  export default text
}
