/** A file to put into an archive. */
export interface ArchiveMember {
  readonly name: string
  /** Bytes. */
  readonly size: number
  /** Milliseconds since 1970. */
  readonly modified: number
  readonly content: ReadableStream<Uint8Array>
}

/** An archive that has come as a whole. Its names, types, sizes and sums were checked. */
export interface OpenArchive extends AsyncDisposable {
  /** Regular files by their names, with their sizes in bytes. */
  readonly members: ReadonlyMap<string, number>
  /** Content of a member; an error at its end when the size or the sum is another than the archive says. */
  read(name: string): Promise<ReadableStream<Uint8Array>>
}

/** Zip archives. Each runtime may have one. */
export interface LabArchives {
  /** An archive of members, one after the other. `level`: compression of deflate from 1 to 9, 0 stores. */
  write(members: AsyncIterable<ArchiveMember>, level: number): ReadableStream<Uint8Array>
  /** Receives an archive. 400 when it is cut, encrypted, lies or has names that leave it; 413 when it gets too large, 507. */
  open(content: ReadableStream<Uint8Array>): Promise<OpenArchive>
}
