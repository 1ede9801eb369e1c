export function licencesOf(directories: Iterable<string>): Promise<string>
export function packageOf(file: string): string | undefined
export function licence(what: string, text: string): string
