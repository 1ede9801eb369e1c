/** Numbers of the system calls that the Perl scripts make (asm/unistd.h). */
const numbers = {
  x64: {
    ...{
      mount: 165,
      pivot_root: 155,
      umount2: 166,
      unshare: 272,
      prctl: 157,
      capset: 126,
      setresuid: 117,
      setresgid: 119,
    },
    ...{ statfs: 137, setgroups: 116, prlimit64: 302, sendmsg: 46, recvmsg: 47, close: 3, exit_group: 231 },
    ...{ fchownat: 260, mknodat: 259, llistxattr: 195, lgetxattr: 192, lsetxattr: 189, syncfs: 306, setns: 308 },
  },
  arm64: {
    ...{ mount: 40, pivot_root: 41, umount2: 39, unshare: 97, prctl: 167, capset: 91, setresuid: 147, setresgid: 149 },
    ...{ statfs: 43, setgroups: 159, prlimit64: 261, sendmsg: 211, recvmsg: 212, close: 57, exit_group: 94 },
    ...{ fchownat: 54, mknodat: 33, llistxattr: 12, lgetxattr: 9, lsetxattr: 6, syncfs: 267, setns: 268 },
  },
} as const

export type SystemCall = keyof (typeof numbers)['x64']

/** The numbers for this processor, separated by commas; undefined where they are not known. */
export function callNumbers(names: readonly SystemCall[]): string | undefined {
  const { arch } = process
  return arch === 'x64' || arch === 'arm64' ? names.map((name) => numbers[arch][name]).join(',') : undefined
}
