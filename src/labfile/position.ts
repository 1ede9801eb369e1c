/** A position in a lab file. */
export interface Position {
  /** Counts from 1. */
  readonly line: number
  /** Counts from 1, in UTF-16 code units; a byte order mark is not counted. */
  readonly column: number
  /** The keys to the value, such as `nodes.R1.image` or `links[3].ends[0]`; empty for the document. */
  readonly path: string
}

/** What is wrong in a lab file. `file:line:column: path: message; hint` is its line for people. */
export interface LabFileDiagnostic extends Position {
  /** What is wrong, such as `unknown key "imgae"`. Control characters of the file are escaped. */
  readonly message: string
  /** How to correct it, such as `did you mean "image"?` */
  readonly hint?: string
}
