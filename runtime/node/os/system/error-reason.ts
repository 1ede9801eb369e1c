const reasons: Readonly<Record<string, string>> = {
  EACCES: 'this user may not do that',
  EPERM: 'this user may not do that',
  ENOENT: 'there is no such file or directory',
  EEXIST: 'a file with that name already exists',
  ENOTDIR: 'a part of the path is a file, not a directory',
  EISDIR: 'it is a directory, not a file',
  ENOTEMPTY: 'the directory is not empty',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of this user is used up',
  ENAMETOOLONG: 'the name is too long',
  ELOOP: 'the symbolic links form a loop',
  EMFILE: 'this process has too many files open (ulimit -n)',
  ENFILE: 'this host has too many files open',
  EADDRINUSE: 'the port is in use',
  EADDRNOTAVAIL: 'this host does not have that address',
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'the other side closed the connection',
  EPROTO: 'the server there does not use TLS; try http://',
  EHOSTUNREACH: 'that host cannot be reached',
  ENETUNREACH: 'that network cannot be reached',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
  ETIMEDOUT: 'there was no answer in time',
  EIO: 'the disk reports an input/output error',
  ETXTBSY: 'the program is running or being written',
  EBUSY: 'it is in use',
}

/** The reason of a failed system call as text for users; the message of the error for other codes. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  return (typeof code === 'string' ? reasons[code] : undefined) ?? String(message)
}
