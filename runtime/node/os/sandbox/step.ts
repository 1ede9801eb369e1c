import { findProgram } from '../system/find-program.ts'
import { callNumbers } from './system-calls.ts'

/**
 * The last step before a confined program, in Perl, which Debian and its derivatives always have: users have no compiler, and Node
 * would take 40 ms. The script creates the namespaces where bubblewrap does not, drops privileges, restricts the network
 * (Landlock), reports the start on descriptor 3, and executes the program.
 */
export const findPerl = (): string | undefined => findProgram('/usr/bin/perl') ?? findProgram('perl')

/** What the script calls, in the order of its first argument. */
const calls = [
  ...(['mount', 'pivot_root', 'umount2', 'unshare', 'prctl', 'capset', 'setresuid', 'setresgid', 'statfs'] as const),
]

/** The numbers for this processor; undefined where they are not known. */
export const stepCallNumbers = (): string | undefined => callNumbers(calls)

/** A mount: `ro`, `rw` and `dev` bind a path to a path, `link` is a symbolic link, `tmp` and `proc` have no source. */
export type Operation = readonly [type: 'ro' | 'rw' | 'dev' | 'link' | 'tmp' | 'proc', from: string, to: string]

export interface Step {
  /** The new root directory and its mounts; absent: the namespaces exist already. */
  readonly namespaces?: {
    readonly root: string
    readonly operations: readonly Operation[]
    readonly hasNetwork: boolean
    /** Without privileges: in a user namespace, where the program is root without capabilities. */
    readonly isUser: boolean
  }
  readonly cwd: string
  /** Descriptors that stay open, after the one that reports the start. */
  readonly sockets: number
  /** The new user; absent: the user does not change. */
  readonly user?: { readonly uid: number; readonly gid: number; readonly groups: readonly number[] }
  /** TCP ports it may listen on, while it connects to none (unless `connects`); absent: no restriction. */
  readonly listens?: readonly number[]
  readonly connects?: boolean | undefined
}

/** The arguments of Perl for a program. */
export function stepArguments(step: Step, command: string, args: readonly string[]): string[] {
  const { namespaces, cwd, sockets, user, listens, connects } = step
  const operations = namespaces?.operations ?? []
  return [
    ...[
      '-e',
      head + (namespaces === undefined ? '' : makeNamespaces) + tail,
      stepCallNumbers() ?? '',
      cwd,
      String(sockets),
    ],
    user === undefined ? '' : [user.uid, user.gid, ...user.groups].join(','),
    listens === undefined ? '-' : (connects === true ? '+' : '') + listens.join(','),
    ...(namespaces === undefined ? [] : [String(flags(namespaces)), namespaces.root, String(operations.length)]),
    ...operations.flat(),
    ...[command, ...args],
  ]
}

/** linux/sched.h: mount, IPC and PID namespaces, a user namespace, a network namespace. */
const flags = ({ isUser, hasNetwork }: NonNullable<Step['namespaces']>): number =>
  0x2802_0000 | (isUser ? 0x1000_0000 : 0) | (hasNetwork ? 0 : 0x4000_0000)

/** Exit code after a failure of the confinement. */
const failureCode = 125

/** For every program: it closes the descriptors above the one that reports the start, and above its sockets (close_range(2), Linux 5.9). */
const head = String.raw`
my ($numbers, $cwd, $sockets, $user, $listens, @rest) = @ARGV;
my $above = 4 + $sockets;
my ($MOUNT, $PIVOT, $UMOUNT, $UNSHARE, $PRCTL, $CAPSET, $SETRESUID, $SETRESGID, $STATFS) = map { $_ + 0 } split /,/, $numbers;
sub fail { print STDERR "the confinement cannot be made: $_[0]: $!\n"; exit ${failureCode} }
sub attempt { my ($number, @values) = @_; syscall($number, @values) }
sub call { my ($what, @values) = @_; my $r = attempt(@values); $r >= 0 or fail($what); $r }
syscall(436, $above, 0xffffffff, 0) >= 0 or eval 'use POSIX (); POSIX::close($_) for $above .. 4095';
`

/** Creates the namespaces and their mounts. Perl takes a millisecond to read it. */
const makeNamespaces = String.raw`
my ($flags, $root, $count) = splice(@rest, 0, 3);
$flags += 0;
sub parents { my ($path) = @_; my $at = $root; my @parts = grep { length } split m{/}, $path; my $last = pop @parts;
  for (@parts) { $at .= "/$_"; -d $at or mkdir $at, 0755 or fail("mkdir $at") } "$at/$last" }
sub place { my ($from, $to) = @_; my $at = parents($to);
  if (-d $from) { -d $at or mkdir $at, 0755 or fail("mkdir $at") }
  elsif (!-e $at) { open(my $f, '>', $at) or fail("create $at"); close $f }
  $at }
sub remount { my ($at, $more) = @_; my ($path, $buffer) = ($at, "\0" x 256);
  syscall($STATFS, $path, $buffer) >= 0 or fail("statfs $at");
  my $has = unpack('Q', substr($buffer, 80, 8));
  my $keep = ($has & (2 | 4 | 8 | 1024 | 2048)) | ($has & 4096 ? 1 << 21 : 0);
  call("remount $at", $MOUNT, 'none', $at, 'none', 4096 | 32 | $keep | $more, 0) }
sub attach { my ($from, $at, $more) = @_;
  if (attempt($MOUNT, $from, $at, 'none', 4096, 0) < 0) { call("bind $from", $MOUNT, $from, $at, 'none', 4096 | 16384, 0) }
  return unless $more;
  remount($at, $more);
  return unless -d $at;
  open(my $f, '<', '/proc/self/mountinfo') or fail('mountinfo');
  for (<$f>) { my $point = (split / /)[4]; $point =~ s/\\(\d{3})/chr(oct($1))/ge; remount($point, $more) if index($point, "$at/") == 0 }
  close $f }
umask 022;
my ($uid, $gid) = ($>, $) + 0);
syscall($PRCTL, 1, 9, 0, 0, 0);
call('unshare', $UNSHARE, $flags);
if ($flags & 0x10000000) {
  for (['setgroups', 'deny'], ['uid_map', "0 $uid 1"], ['gid_map', "0 $gid 1"]) {
    open(my $f, '>', "/proc/self/$$_[0]") or fail($$_[0]); (syswrite $f, $$_[1]) or fail($$_[0]); close $f }
}
my $init = fork; defined $init or fail('fork');
if ($init) {
  $SIG{TERM} = 'IGNORE'; open STDIN, '<', '/dev/null'; close STDOUT; open(my $f, '<&=', 3) and close $f;
  waitpid($init, 0); exit($? & 127 ? 128 + ($? & 127) : $? >> 8) }
syscall($PRCTL, 1, 9, 0, 0, 0);
call('private mounts', $MOUNT, 'none', '/', 'none', 262144 | 16384, 0);
call('tmpfs', $MOUNT, 'tmpfs', $root, 'tmpfs', 2 | 4, 'mode=755');
mkdir "$root/.old", 0755 or fail('mkdir');
for (1 .. $count) {
  my ($type, $from, $to) = splice(@rest, 0, 3);
  if ($type eq 'ro') { attach($from, place($from, $to), 1 | 2 | 4) }
  elsif ($type eq 'rw') { attach($from, place($from, $to), 2 | 4) }
  elsif ($type eq 'dev') { attach($from, place($from, $to), 0) }
  elsif ($type eq 'link') { symlink($from, parents($to)) or fail("link $to") }
  else { my $at = parents($to); -d $at or mkdir $at, 0755 or fail("mkdir $at");
    my $kind = $type eq 'proc' ? 'proc' : 'tmpfs';
    call("$kind $to", $MOUNT, $kind, $at, $kind, 2 | 4 | ($type eq 'proc' ? 8 : 0), $type eq 'proc' ? 0 : 'mode=1777') }
}
call('pivot_root', $PIVOT, $root, "$root/.old");
chdir '/' or fail('chdir');
call('umount', $UMOUNT, '/.old', 2);
rmdir '/.old';
call('remount /', $MOUNT, 'none', '/', 'none', 4096 | 32 | 1 | 2 | 4, 0);
my $child = fork; defined $child or fail('fork');
if ($child) {
  open STDIN, '<', '/dev/null'; close STDOUT; open(my $f, '<&=', 3) and close $f;
  my $code = 0;
  for (;;) { my $pid = waitpid(-1, 0); last if $pid < 0; if ($pid == $child) { exit($? & 127 ? 128 + ($? & 127) : $? >> 8) } }
  exit 1 }
`

/** For every program: drops privileges, restricts the network, and executes it. */
const tail = String.raw`
for (0 .. 63) { last if syscall($PRCTL, 24, $_, 0, 0, 0) < 0 }
if (length $user) {
  my ($uid, $gid, @groups) = map { $_ + 0 } split /,/, $user;
  $) = join ' ', $gid, @groups ? @groups : $gid;
  call('setresgid', $SETRESGID, $gid, $gid, $gid);
  call('setresuid', $SETRESUID, $uid, $uid, $uid);
}
call('capset', $CAPSET, pack('LL', 0x20080522, 0), "\0" x 24);
call('no_new_privs', $PRCTL, 38, 1, 0, 0, 0);
chdir $cwd or fail("chdir $cwd");
if ($listens ne '-') {
  my $abi = syscall(444, 0, 0, 1);
  my $access = $listens =~ s/^\+// ? 1 : 3;
  if ($abi >= 4) {
    my $ruleset = call('Landlock', 444, pack('QQQ', 0, $access, $abi >= 6 ? 3 : 0), $abi >= 6 ? 24 : 16, 0);
    for (split /,/, $listens) { call('Landlock', 445, $ruleset, 2, pack('QQ', 1, $_ + 0), 0) }
    call('Landlock', 446, $ruleset, 0);
    open(my $f, '<&=', $ruleset) and close $f;
  }
}
if (open(my $f, '>&=', 3)) { syswrite $f, "\n"; close $f }
exec { $rest[0] } @rest or fail($rest[0]);
`
