import { LabFileError } from '../../src/labfile/lab-file-error.ts'
import { namedFiles } from '../../src/labfile/read.ts'

/** The files that a lab file names. Throws a `LabFileError` for all that is wrong in it. */
export function filesOf(...input: Parameters<typeof namedFiles>): ReturnType<typeof namedFiles>['files'] {
  const { files, diagnostics } = namedFiles(...input)
  if (diagnostics.length > 0) throw new LabFileError(diagnostics)
  return files
}
