/** What a guest's first file system has; the parents of a path come before it. */
export type Entry =
  | { readonly path: string; readonly type: 'directory' }
  | { readonly path: string; readonly type: 'file'; readonly content: Uint8Array; readonly mode: number }
  | { readonly path: string; readonly type: 'link'; readonly target: string }
  | { readonly path: string; readonly type: 'character'; readonly major: number; readonly minor: number }

/** An archive as the kernel unpacks it: format "newc" of cpio(5). */
export function cpio(entries: readonly Entry[]): Buffer {
  const trailer = record('TRAILER!!!', new Array(11).fill(0), new Uint8Array())
  return Buffer.concat([...entries.flatMap((entry, index) => member(entry, index + 1)), ...trailer])
}

function member(entry: Entry, inode: number): Buffer[] {
  const device = entry.type === 'character' ? [entry.major, entry.minor] : [0, 0]
  const content = contentOf(entry)
  return record(entry.path, [inode, modeOf(entry), 0, 0, 1, 0, content.length, 0, 0, ...device], content)
}

function contentOf(entry: Entry): Uint8Array {
  if (entry.type === 'file') return entry.content
  return Buffer.from(entry.type === 'link' ? entry.target : '')
}

function modeOf(entry: Entry): number {
  switch (entry.type) {
    case 'directory':
      return 0o040755
    case 'file':
      return 0o100000 | entry.mode
    case 'link':
      return 0o120777
    case 'character':
      return 0o020600
  }
}

function record(path: string, fields: readonly number[], content: Uint8Array): Buffer[] {
  const name = Buffer.from(`${path}\0`)
  const header = [...fields, name.length, 0].map((field) => field.toString(16).padStart(8, '0')).join('')
  return [padded(Buffer.concat([Buffer.from(`070701${header}`), name])), padded(content)]
}

/** Headers and contents start at multiples of 4. */
const padded = (bytes: Uint8Array): Buffer => Buffer.concat([bytes, new Uint8Array(-bytes.length & 3)])
