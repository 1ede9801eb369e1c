/** A file to put into an archive. */
export interface ArchiveMember {
  readonly name: string
  /** Bytes; undefined when they are not known before. */
  readonly size: number | undefined
  /** Milliseconds since 1970. */
  readonly modified: number
  readonly content: ReadableStream<Uint8Array>
}

/** A completely received archive, whose names, types and sizes were checked. */
export interface OpenArchive extends AsyncDisposable {
  /** Regular files by their names, with their sizes in bytes. */
  readonly members: ReadonlyMap<string, number>
  /** Content of a member, which can be read once: its space may be freed as it is read. The stream fails at its end when its size or CRC-32 differs from that in the archive. */
  read(name: string): Promise<ReadableStream<Uint8Array>>
}

/** Projects of GNS3 on the disk of the host of this service. */
export interface HostProjects {
  /** The project whose document (*.gns3) has a path, in the form of an archive; members can be read more than once. 400, 403, 404, 413. */
  open(path: string): Promise<OpenArchive>
}

/** Reads and writes zip archives; each runtime may implement it. */
export interface ZipArchives {
  /** Writes the members one after the other. `level`: of deflate from 1 to 9; 0 stores. */
  write(members: AsyncIterable<ArchiveMember>, level: number): ReadableStream<Uint8Array>
  /** Receives an archive; `outer`: the open one that it is in. 400 when it is damaged, encrypted, inconsistent or has unsafe names; 413 when it is too large; 507. */
  open(content: ReadableStream<Uint8Array>, outer?: OpenArchive): Promise<OpenArchive>
}
