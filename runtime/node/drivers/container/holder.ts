import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { commandGraceMs } from '../../keeper/protocol/protocol.ts'
import { findPerl } from '../../os/sandbox/step.ts'
import { callNumbers } from '../../os/sandbox/system-calls.ts'
import { type Limited, notLimited } from './control-groups.ts'
import type { IdRange } from './ids.ts'
import { panelScript } from './panel-script.ts'

/**
 * The holder of a container, in Perl as the last step of a cell (os/sandbox/step.ts): Node has threads, and a process with threads
 * cannot enter a user namespace. It makes the user, network, mount, IPC and PID namespaces of one node, in which root is a sub-id of the
 * host, the adapters and the root file system, and has crun run the container in them. It dies with the keeper, and everything in its
 * PID namespace with it. The terminal of the container and its TAP devices go to the keeper over descriptor 4, before descriptor 3 reports
 * the start.
 */

/** What the script calls, in the order of its first argument. */
const calls = [
  ...(['mount', 'unshare', 'prctl', 'setresuid', 'setresgid', 'setgroups', 'prlimit64', 'sendmsg', 'statfs'] as const),
  ...(['exit_group', 'close', 'recvmsg', 'setns'] as const),
]

/** A directory or a file that is seen at `/mnt/{name}` in the namespaces. */
export interface Place {
  readonly name: string
  readonly path: string
  readonly isWritable: boolean
}

interface Tap {
  readonly name: string
  readonly mac: string
}

/** The address of the first adapter. */
interface OwnAddress {
  readonly address: string
  /** Length of the prefix. */
  readonly prefix: number
  /** Empty: none. */
  readonly gateway: string
}

/** A file that is copied to `/mnt/layer/files/{to}`, unless it is there. */
export interface CopiedFile {
  /** Below `/mnt/bundle`. */
  readonly from: string
  readonly to: string
  readonly mode: string
}

/** Where the directories of a container are for its holder and for crun. */
export const inside = {
  bundle: '/mnt/bundle',
  layer: '/mnt/layer',
  image: '/mnt/image',
  rootfs: '/mnt/rootfs',
  files: '/mnt/layer/files',
} as const

interface HeldContainer {
  readonly ids: IdRange
  readonly places: readonly Place[]
  readonly limits: Limited
  /** Limit of processes in the namespaces. */
  readonly processes: number
  /** Whether it may make user namespaces of its own, in which it has all capabilities. */
  readonly isNesting: boolean
  readonly crun: string
  readonly tun: string
  /** Numbers of the signals that end it. */
  readonly signals: readonly number[]
  readonly taps: readonly Tap[]
  readonly address: OwnAddress | undefined
  readonly files: readonly CopiedFile[]
  /** Names and values of kernel parameters of its network. */
  readonly sysctls: readonly (readonly [string, string])[]
  readonly exec: readonly string[]
}

/** The command of the holder of a container. 409 without Perl. */
export function holderCommand(of: HeldContainer): { command: string; args: string[] } {
  const { tun, crun, signals, taps, address, files, sysctls, exec } = of
  return command({ ...of, namespaces: of.isNesting ? maxNamespaces : 1 }, [
    ...['container', tun, crun, signals.join(','), String(taps.length)],
    ...taps.flatMap(({ name, mac }) => [name, mac]),
    ...(address === undefined ? ['', '', ''] : [address.address, String(address.prefix), address.gateway]),
    String(files.length),
    ...files.flatMap(({ from, to, mode }) => [from, to, mode]),
    ...[String(sysctls.length), ...sysctls.flat()],
    ...exec,
  ])
}

/** The command that runs a program as root of the namespaces, in `/mnt` and without a network, on files of containers and images. */
export const insideCommand = (
  ids: IdRange,
  places: readonly Place[],
  program: readonly string[],
): { command: string; args: string[] } =>
  command({ ids, limits: notLimited, processes: 0, namespaces: 1, places }, ['tool', ...program])

/**
 * The command that makes a panel: a user namespace for all holders of a keeper, and a network namespace in it where the adapters of their
 * containers are joined. It hands over `user`, `net`, and `netlink`, a socket for changes there, and ends.
 */
export const panelCommand = (ids: IdRange): { command: string; args: string[] } =>
  command({ ids, limits: notLimited, processes: 0, namespaces: 1, places: [] }, ['panel'])

/** What the kernel counts for the user of the service, and has few of: no container may have all (namespaces(7), inotify(7)). */
const maxNamespaces = 256
const maxInotifyInstances = 16
const maxWatches = 8192

interface Held extends Pick<HeldContainer, 'ids' | 'limits' | 'processes' | 'places'> {
  /** Limit of user namespaces; the node itself has one. */
  readonly namespaces: number
}

/** Values of /proc/sys/user. */
const limitsOf = (namespaces: number): string[] => [
  `max_user_namespaces=${namespaces}`,
  ...['mnt', 'pid', 'ipc', 'uts', 'net', 'cgroup', 'time'].map((it) => `max_${it}_namespaces=${maxNamespaces}`),
  ...['inotify_instances', 'fanotify_groups'].map((it) => `max_${it}=${maxInotifyInstances}`),
  ...['inotify_watches', 'fanotify_marks'].map((it) => `max_${it}=${maxWatches}`),
]

function command({ ids, limits, processes, namespaces, places }: Held, rest: readonly string[]) {
  const [perl, numbers] = [findPerl(), callNumbers(calls)]
  if (perl === undefined || numbers === undefined)
    throw conflict('Containers need Perl: install it, for example with: sudo apt-get install perl-base')
  const shown = places.flatMap(({ name, path, isWritable }) => [name, isWritable ? 'rw' : 'ro', path])
  const range = [ids.by, `${ids.firstUid},${ids.firstGid}`, String(ids.count)]
  const { prefix, groups } = limits
  const [program = perl, ...args] = [
    ...[...prefix, perl, '-e', script, numbers, groups.join('\n'), ...range, String(processes)],
    ...[limitsOf(namespaces).join(','), String(places.length), ...shown, ...rest],
  ]
  return { command: program, args }
}

/** Exit code after a failure of the holder. */
const failureCode = 125
/** Longest start of a further command by crun, s: less than what the keeper gives it. */
const startSeconds = commandGraceMs / 1000 - 2

const script = String.raw`
use strict;
my ($numbers, $groups, $by, $first_ids, $ids, $processes, $limits, $count, @rest) = @ARGV;
my ($MOUNT, $UNSHARE, $PRCTL, $SETRESUID, $SETRESGID, $SETGROUPS, $PRLIMIT, $SENDMSG, $STATFS, $EXIT, $CLOSE, $RECVMSG, $SETNS) = map { $_ + 0 } split /,/, $numbers;
my ($first_uid, $first_gid) = split /,/, $first_ids;
my $mode = $rest[3 * $count]; my $is_tool = $mode eq 'tool';
# Descriptors of the namespaces that a panel has made.
my $is_wired = $mode eq 'container' && -e '/proc/self/fd/6';
# Modules would take a megabyte of each node. ps(1) shows whose holder it is, in place of this text.
$0 = 'patchbay: holder of ' . ($rest[2] // 'a program');
sub leave { my ($code) = @_; syscall($EXIT, $code) }
sub fail { my $why = $!; print STDERR "the container cannot be made: $_[0]: $why\n"; leave(${failureCode}) }
sub attempt { my ($number, @values) = @_; syscall($number, @values) }
sub call { my ($what, @values) = @_; attempt(@values) >= 0 or fail($what) }
sub put { my ($file, $text) = @_; open(my $f, '>', $file) or fail($file); (syswrite $f, $text) == length $text or fail($file); close $f }
sub beginning_of { my ($file) = @_; open(my $f, '<', $file) or return ''; sysread($f, my $text, 65536); $text // '' }
sub end_of { my ($status) = @_; $status & 127 ? 128 + ($status & 127) : $status >> 8 }
sub die_with_parent { attempt($PRCTL, 1, 9, 0, 0, 0) }
sub close_channels { return if $is_tool; syscall($CLOSE, 3); syscall($CLOSE, 4) }
sub wait_for { my ($child) = @_; $SIG{TERM} = 'IGNORE'; $SIG{HUP} = 'IGNORE'; close_channels(); waitpid($child, 0); leave(end_of($?)) }
# The kernel forgets the death signal with a change of the user.
sub become_root { call('setgroups', $SETGROUPS, 0, 0); call('setresgid', $SETRESGID, 0, 0, 0); call('setresuid', $SETRESUID, 0, 0, 0); die_with_parent() }

${panelScript}
# 1. The namespaces, and the ids in them: a user namespace in another one. The kernel counts what all users of the inner one have as
# that of its maker, by limits of the outer one, which root of the inner one cannot change. The maker is the user of the service, who
# has an id in the outer one only.
$^F = 255;
die_with_parent();
# Names of directories have commas: cpu,cpuacct.
put($_, '0') for split /\n/, $groups;
if ($is_wired) {
  for ([5, 0x10000000], [6, 0x40000000]) { call('the namespaces of the panel', $SETNS, @$_); syscall($CLOSE, $$_[0]) }
  # Its maker has to have a group there, and has to be let at the ids of its child.
  call('setresgid', $SETRESGID, 0, 0, 0); attempt($PRCTL, 4, 1, 0, 0, 0); die_with_parent() }
pipe(my $made, my $make) or fail('pipe'); pipe(my $mapped, my $map) or fail('pipe');
pipe(my $spaced, my $space) or fail('pipe'); pipe(my $plugged, my $plug) or fail('pipe');
my $child = fork; defined $child or fail('fork');
if ($child) {
  close $make; close $mapped; close $space; close $plugged;
  if (sysread($made, my $byte, 1)) {
    if ($is_wired) { put("/proc/$child/uid_map", "0 0 $ids\n$ids $ids 1"); put("/proc/$child/gid_map", "0 0 $ids") }
    elsif ($by eq 'root') { put("/proc/$child/uid_map", "0 $first_uid $ids\n$ids 0 1"); put("/proc/$child/gid_map", "0 $first_gid $ids") }
    else { for (['newuidmap', $first_uid, $ids, $ids, $<, 1], ['newgidmap', $first_gid, $ids]) { my ($program, @ranges) = @$_;
      system($program, $child, 0, @ranges) == 0 or do { kill 9, $child; print STDERR "the container cannot be made: $program failed\n"; leave(${failureCode}) } } }
    syswrite $map, 'x' }
  close $map; plug_in($child, $spaced, $plug) if $is_wired;
  close $spaced; close $plug; wait_for($child) }
close $made; close $map; close $spaced; close $plug; die_with_parent();
call('user namespaces', $UNSHARE, 0x10000000);
syswrite $make, 'x'; close $make;
sysread($mapped, my $byte, 1) or leave(${failureCode}); close $mapped;
make_panel() if $mode eq 'panel';
# Its maker has to have a group in the outer one, and processes of its user have to be let at its ids.
call('setresgid', $SETRESGID, 0, 0, 0); attempt($PRCTL, 4, 1, 0, 0, 0); die_with_parent();
pipe(my $inner, my $tell) or fail('pipe');
my $mapper = fork; defined $mapper or fail('fork');
if (!$mapper) {
  close $tell; die_with_parent();
  sysread($inner, $byte, 1) or leave(${failureCode});
  my $at = '/proc/' . getppid();
  put("$at/uid_map", "0 0 $ids"); put("$at/gid_map", "0 0 $ids");
  for (split /,/, $limits) { my ($name, $value) = split /=/; put("/proc/sys/user/$name", $value) if -e "/proc/sys/user/$name" }
  leave(0) }
close $inner;
attempt($PRLIMIT, 0, 6, pack('QQ', $processes, $processes), 0) if $processes;
call('namespaces', $UNSHARE, 0x10000000 | 0x40000000 | 0x20000 | 0x08000000);
syswrite $tell, 'x'; close $tell; syswrite $space, 'x' if $is_wired;
waitpid($mapper, 0); $? == 0 or leave(${failureCode});
# The third one of users is the one that a container of two has in the panel.
if ($mode eq 'panel') { become_root(); call('a third user namespace', $UNSHARE, 0x10000000); leave(0) }

# 2. The places. Only the user of the service reaches them, and only root of the namespaces makes files there.
call('private mounts', $MOUNT, 'none', '/', 'none', 262144 | 16384, 0);
my @places;
for (1 .. $count) { my ($name, $mode, $path) = splice(@rest, 0, 3);
  sysopen(my $at, $path, 2048) or fail($path); push @places, [$name, $mode, $at] }
my $maker = fork; defined $maker or fail('fork');
if (!$maker) {
  become_root();
  call('tmpfs', $MOUNT, 'tmpfs', '/mnt', 'tmpfs', 2 | 4, 'mode=755,size=64m');
  for (['rootfs'], ['crun'], @places) { my ($name, $mode, $at) = @$_;
    if (!$at || -d $at) { mkdir "/mnt/$name", 0755 or fail("mkdir $name") } else { put("/mnt/$name", '') } }
  leave(0) }
waitpid($maker, 0); $? == 0 or leave(${failureCode});
sub read_only { my ($at) = @_; my ($path, $buffer) = ($at, "\0" x 256);
  syscall($STATFS, $path, $buffer) >= 0 or fail("statfs $at");
  my $has = unpack('Q', substr($buffer, 80, 8));
  call("remount $at", $MOUNT, 'none', $at, 'none', 4096 | 32 | 1 | ($has & (2 | 4 | 8 | 1024 | 2048)) | ($has & 4096 ? 1 << 21 : 0), 0) }
for (@places) { my ($name, $mode, $at) = @$_; my $from = '/proc/self/fd/' . fileno($at);
  if (attempt($MOUNT, $from, "/mnt/$name", 'none', 4096, 0) < 0) { call("bind $name", $MOUNT, $from, "/mnt/$name", 'none', 4096 | 16384, 0) }
  read_only("/mnt/$name") if $mode eq 'ro';
  close $at }
# Before the user changes: the device may be that of the service alone.
my ($tun, $crun, $signals, $taps, @more) = $is_tool ? () : @rest[1 .. $#rest];
my @tuns = map { sysopen(my $tap, $tun, 2 | 2048) or fail($tun); $tap } 1 .. ($is_wired ? 0 : $taps || 0);
become_root();
call('PID namespaces', $UNSHARE, 0x20000000);
my $init = fork; defined $init or fail('fork');
if ($init) { close $space; wait_for($init) }
die_with_parent();
call('proc', $MOUNT, 'proc', '/proc', 'proc', 2 | 4 | 8, 0);
if ($is_tool) {
  chdir '/mnt' or fail('chdir');
  my $tool = fork; defined $tool or fail('fork');
  if (!$tool) { exec { $rest[1] } @rest[1 .. $#rest]; fail($rest[1]) }
  for (;;) { my $pid = waitpid(-1, 0); leave(end_of($?)) if $pid == $tool; leave(1) if $pid < 0 } }

# 3. The adapters (netdevice(7), linux/if_tun.h): TAP devices without packet information, with a virtio header.
sub request { my ($code, $name, $rest, $what) = @_; $control or socket($control, 2, 2, 0) or fail('socket'); my $q = pack('a16 a24', $name, $rest); ioctl($control, $code, $q) or fail("$what of $name"); substr($q, 16) }
sub up { my ($name) = @_; my $is = unpack('S', request(0x8913, $name, '', 'the flags')); request(0x8914, $name, pack('S', $is | 1), 'the state') }
sub tap_of { my ($tap, $name) = @_; my $q = pack('a16 S x22', $name, 2 | 0x1000 | 0x4000); ioctl($tap, 0x400454ca, $q) or fail("the device $name") }
up('lo');
if ($is_wired) { sysread($plugged, $byte, 1) or leave(${failureCode}) }
my (@made, $first_name);
for (1 .. $taps) { my ($name, $mac) = splice(@more, 0, 2); $first_name //= $name; if ($is_wired) { up($name); next }
  my $tap = shift @tuns; tap_of($tap, $name);
  request(0x8924, $name, pack('S a6', 1, pack('H12', join '', split /:/, $mac)), 'the address');
  up($name); push @made, [$name, $tap] }
# As ip(8) would with an image that has it: the address of the first adapter, its mask, and the default route (route(7), linux/route.h).
sub inet { pack('S x2 C4 x8', 2, split /\./, $_[0]) }
my ($own, $prefix, $gateway) = splice(@more, 0, 3);
if ($own && defined $first_name) {
  request(0x8916, $first_name, inet($own), "the address $own");
  request(0x891c, $first_name, inet(join '.', unpack('C4', pack('N', 0xffffffff << (32 - $prefix) & 0xffffffff))), "the mask of $own");
  if ($gateway) { my $q = pack('x8 a16 a16 a16 S x62', inet('0.0.0.0'), inet($gateway), inet('0.0.0.0'), 3);
    ioctl($control, 0x890b, $q) or fail("the gateway $gateway") } }

# 4. The files, the root file system, and the container.
for ('upper', 'work', 'files') { -d "/mnt/layer/$_" or mkdir "/mnt/layer/$_", 0755 or fail("mkdir $_") }
my $files = shift @more;
for (1 .. $files) { my ($from, $to, $bits) = splice(@more, 0, 3); my $at = "/mnt/layer/files/$to";
  next if -e $at;
  open(my $in, '<', "/mnt/bundle/$from") or fail($from); open(my $out, '>', "$at.new") or fail($to);
  { local $/; print $out scalar <$in> } close $out or fail($to);
  chmod oct($bits), "$at.new" or fail($to); rename "$at.new", $at or fail($to) }
my $parameters = shift @more;
for (1 .. $parameters) { my ($name, $value) = splice(@more, 0, 2); put('/proc/sys/' . join('/', split /\./, $name), $value) }
# Where only a user namespace has privileges, overlayfs marks directories that hide those of the image by userxattr alone.
my $overlay = 'lowerdir=/mnt/image,upperdir=/mnt/layer/upper,workdir=/mnt/layer/work';
if (attempt($MOUNT, 'overlay', '/mnt/rootfs', 'overlay', 2 | 4, "$overlay,userxattr") < 0) { call('overlay', $MOUNT, 'overlay', '/mnt/rootfs', 'overlay', 2 | 4, $overlay) }
# crun 1.8 refuses a host with both versions of control groups; it is to use none.
attempt($MOUNT, 'none', '/sys/fs/cgroup', 'tmpfs', 2 | 4 | 8, 'mode=755') if -d '/sys/fs/cgroup/unified';
my @crun = ($crun, '--root', '/mnt/crun', '--cgroup-manager=disabled');
# What version 1.8 sometimes says of a start that can succeed: its parts end in any order, or it does not find a container that runs. Then
# it has started nothing.
my $passing = qr/connection closed|pid .* reused|not found, the pid/;
my ($consoles, $tries) = (undef, 5);
for (;;) {
  unlink '/mnt/console.sock';
  socket($consoles, 1, 1, 0) && bind($consoles, pack('S a108', 1, '/mnt/console.sock')) && listen($consoles, 1) or fail('the socket of the console');
  my $run = fork; defined $run or fail('fork');
  if (!$run) {
    close_all(); open(STDERR, '>', '/mnt/crun.txt') or fail('crun.txt');
    exec { $crun } @crun, 'run', '--detach', '--console-socket', '/mnt/console.sock', '--bundle', '/mnt/bundle', 'container';
    print STDERR "$crun: $!\n"; leave(127) }
  waitpid($run, 0);
  last if $? == 0;
  my $end = end_of($?);
  my $why = beginning_of('/mnt/crun.txt');
  next if $why =~ $passing && $tries-- > 0;
  $why =~ s/^\S+Z: //mg; print STDERR $why; leave($end) }
my $first = beginning_of('/mnt/crun/container/status') =~ /"pid"\s*:\s*(\d+)/ ? $1 : 0;
# The first process of a PID namespace hears only signals that it has handlers for; so does this one, from before it reports the start.
$SIG{TERM} = sub { my $caught = 0;
  if (open(my $f, '<', "/proc/$first/status")) { for (<$f>) { $caught = hex $1 if /^SigCgt:\s*(\w+)/ } }
  my @heard = grep { $caught >> ($_ - 1) & 1 } split /,/, $signals;
  kill $_, $first for @heard ? @heard : 9 };
sub receive { my ($peer) = @_; my ($data, $rights) = ("\0" x 256, "\0" x 64); my $piece = pack('P Q', $data, 256);
  my $message = pack('Q L x4 P Q P Q l x4', 0, 0, $piece, 1, $rights, 64, 0);
  syscall($RECVMSG, fileno $peer, $message, 0) >= 0 or fail('the console'); unpack('x16 l', $rights) }
sub hand_over { my ($name, $fd) = @_; my $piece = pack('P Q', $name, length $name); my $rights = pack('Q l l l x4', 20, 1, 1, $fd);
  my $message = pack('Q L x4 P Q P Q l x4', 0, 0, $piece, 1, $rights, 24, 0);
  syscall($SENDMSG, 4, $message, 0x4000) >= 0 or fail("handing over $name"); syscall($CLOSE, $fd) }
accept(my $peer, $consoles) or fail('the console');
hand_over('console', receive($peer));
close $peer; close $consoles;
hand_over($$_[0], fileno $$_[1]) for @made;
if ($is_wired) { syswrite $space, 'x'; close $space; sysread($plugged, $byte, 1) or leave(${failureCode}) }
# Further commands: a process of its own waits for requests of the keeper (keeper/process/inside-commands.ts), another one runs each.
sub close_all { syscall($CLOSE, $_) for 3 .. 255 }
sub say { my ($door, @words) = @_; send($door, join(' ', @words), 0x4000) }
sub run_inside { my ($id, $kind, $seconds, @words) = @_; open(my $door, '+<&=', 4) or leave(1);
  my ($socket, $file, $log) = ("/mnt/tty-$id.sock", "/mnt/run-$id.pid", "/mnt/why-$id.txt");
  my @more = $kind eq 'tty' ? ('--detach', '--tty', '--console-socket', $socket) : ('--pid-file', $file);
  my $consoles;
  if ($kind eq 'tty') { socket($consoles, 1, 1, 0) && bind($consoles, pack('S a108', 1, $socket)) && listen($consoles, 1) or leave(1) }
  my ($end, $why, $tries, $late, $is_begun, $run) = (1, '', 3, 0, 0, 0);
  # With all that it has started: with its group, which is that of a parent within crun. Again each second, as another try may begin.
  local $SIG{ALRM} = sub { $late = 1; my @late = grep { $_ } int(beginning_of($file)), $run; my $own = getpgrp;
    kill -9, grep { $_ > 1 && $_ != $own } map { getpgrp($_) || 0 } @late; kill 9, @late; alarm 1 };
  alarm ${startSeconds};
  while ($tries-- > 0) {
    unlink $file, $log;
    $run = fork; defined $run or leave(1);
    if (!$run) { setpgrp; close_all(); open(STDIN, '<', '/dev/null'); open(STDOUT, '>', '/dev/null'); open(STDERR, '>', '/dev/null');
      exec { $crun } @crun, '--log', $log, 'exec', '--no-new-privs', @more, 'container', @words; leave(127) }
    my $ended;
    select(undef, undef, undef, 0.02) until ($ended = waitpid($run, 1)) || -s $file;
    # The time of a command begins when it runs: on a busy host crun itself may take seconds.
    alarm $seconds unless $ended || $late || $is_begun++;
    until ($ended || waitpid($run, 0) == $run) { last unless $!{EINTR} }
    $end = end_of($?); $run = 0;
    $why = beginning_of($log);
    last if $late || $end == 0 || $why !~ $passing }
  alarm 0;
  if ($kind eq 'tty' && $end == 0) { accept(my $peer, $consoles) or leave(1); hand_over("tty $id", receive($peer)) }
  else { $why =~ s/^\S+Z: //mg; $why =~ s/[^\x20-\x7e]+/ /g; say($door, 'end', $id, $late ? 137 : $end, substr($why, 0, 400)) }
  unlink $socket, $file, $log; leave(0) }
my $doorkeeper = fork; defined $doorkeeper or fail('fork');
if (!$doorkeeper) {
  syscall($CLOSE, 3); $SIG{CHLD} = 'IGNORE'; $SIG{TERM} = 'DEFAULT';
  open(my $door, '+<&=', 4) or leave(1);
  for (;;) {
    # The socket does not block: the keeper never waits for it.
    my $asked = ''; vec($asked, 4, 1) = 1; select($asked, undef, undef, undef);
    defined recv($door, my $request, 1 << 16, 0) or do { next if $!{EINTR} || $!{EAGAIN}; leave(1) };
    leave(0) if $request eq '';
    my ($kind, $id, @words) = split /\0/, $request, -1;
    my $worker = fork; next if $worker || !defined $worker;
    $SIG{CHLD} = 'DEFAULT'; run_inside($id, $kind, @words) } }
syscall($CLOSE, 4);
if (open(my $f, '>&=', 3)) { syswrite $f, "\n"; close $f }
# The container is a child since crun has left it.
sub reap { my $pid = waitpid(-1, 0); leave(end_of($?)) if $pid == $first; $pid }
LINE: for my $line (@more) {
  for my $left (reverse 0 .. 5) {
    unlink '/mnt/exec.txt';
    my $pid = fork; next LINE unless defined $pid;
    if (!$pid) { open STDIN, '<', '/dev/null'; exec { $crun } @crun, '--log', '/mnt/exec.txt', 'exec', '--no-new-privs', 'container', '/bin/sh', '-c', $line; leave(127) }
    my $ended; do { $ended = reap() } until $ended == $pid || ($ended < 0 && !$!{EINTR});
    next LINE if $ended != $pid || $? == 0;
    next if $left && beginning_of('/mnt/exec.txt') =~ $passing;
    print STDERR "\r\n$line: exit code " . end_of($?) . "\r\n"; next LINE } }
for (;;) { leave(1) if reap() < 0 && !$!{EINTR} }
`
