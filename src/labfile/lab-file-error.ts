import { ApiError } from '../lib/errors/api-error.ts'
import type { ErrorCode } from '../lib/errors/error-codes.ts'
import { maxDiagnostics, moreDiagnostics } from './diagnostics.ts'
import type { LabFileDiagnostic } from './position.ts'

/** A lab file that is wrong; a 400 of the interface. Of many diagnostics it has the first 20. */
export class LabFileError extends ApiError {
  readonly diagnostics: readonly LabFileDiagnostic[]
  /** Faults that it does not have. */
  readonly more: number

  constructor(all: readonly LabFileDiagnostic[], code?: ErrorCode) {
    const diagnostics = all.slice(0, maxDiagnostics)
    const more = all.length - diagnostics.length
    const lines = [
      ...diagnostics.map((diagnostic) => diagnosticLine(diagnostic)),
      ...(more > 0 ? [moreDiagnostics(more)] : []),
    ]
    const cut = more > 0 ? { more_errors: more } : {}
    super(400, lines.join('\n'), { errors: diagnostics, ...cut, ...(code !== undefined && { code }) })
    this.diagnostics = diagnostics
    this.more = more
  }
}

/** `lab.yaml:12:5: nodes.R1: unknown key "imgae"; did you mean "image"?` */
function diagnosticLine({ line, column, path, message, hint }: LabFileDiagnostic, file?: string): string {
  const where = `${file === undefined ? '' : `${file}:`}${line}:${column}: `
  return `${where}${path === '' ? '' : `${path}: `}${message}${hint === undefined ? '' : `; ${hint}`}`
}
