import { callNumbers } from '../../os/sandbox/system-calls.ts'

/**
 * The layers of containers as archives, in Perl inside the namespaces, since their files belong to ids of these. An archive is a tar
 * archive (pax) with what the OCI image specification says of layers: `.wh.NAME` for a file of the image that was deleted, and
 * `.wh..wh..opq` in a directory that hides that of the image. Both scripts change their root to the directory of the layer first: a link
 * in it leads to nothing else, whoever made the layer or the archive, and also while a container changes it.
 */

/** What the scripts call, in the order of their first argument. */
const calls = ['fchownat', 'mknodat', 'llistxattr', 'lgetxattr', 'lsetxattr', 'syncfs'] as const

/** The words after `perl` of a script with its arguments; undefined on a processor whose system calls are not known. */
const wordsOf = (script: string, args: readonly string[]): string[] | undefined => {
  const numbers = callNumbers(calls)
  return numbers === undefined ? undefined : ['-e', beginning + script, numbers, ...args]
}

/** Directories of a layer that an archive has: what the container wrote, and the files of its settings. */
const parts = ['upper', 'files'] as const

/** Writes the layer at `at` to standard output. */
export const packWords = (at: string): string[] | undefined => wordsOf(packing, [at, '', ...parts])

/** Unpacks standard input to the empty directory `at`. */
export const unpackWords = (at: string): string[] | undefined => wordsOf(unpacking, [at])

/**
 * Writes what a container wrote to standard output, as a layer of an image. `files`: the paths in the container of the files of its
 * settings, and their names in the layer, in turn.
 */
export const imageLayerWords = (at: string, files: readonly string[]): string[] | undefined =>
  wordsOf(packing, [at, files.join('\n'), 'upper'])

/** A device 0/0 stands for a deleted file (overlayfs.rst of the kernel). */
const beginning = String.raw`
use strict;
my ($numbers, $at, @rest) = @ARGV;
my ($FCHOWNAT, $MKNODAT, $LLISTXATTR, $LGETXATTR, $LSETXATTR, $SYNCFS) = map { $_ + 0 } split /,/, $numbers;
my $opaque = 'user.overlay.opaque';
sub fail { print STDERR "$_[0]\n"; exit 1 }
sub failed { fail("$_[0]: $!") }
chdir $at or failed('the layer'); chroot '.' or failed('the root'); chdir '/' or failed('the layer');
binmode STDIN; binmode STDOUT;
# Attributes that belong to files; overlayfs has others for itself.
sub is_kept { $_[0] =~ /^(user\.(?!overlay\.)|security\.capability$|system\.posix_acl_(access|default)$)/ }
# Paths may be longer than the kernel takes at once.
sub go { my ($path) = @_; chdir '/' or return 0;
  while (length $path > 4000) { my $cut = rindex($path, '/', 4000); chdir substr($path, 0, $cut) or return 0; $path = substr($path, $cut + 1) }
  $path eq '' || chdir $path }
`

const packing = String.raw`
my ($files, @roots) = @rest;
my $is_image = @roots == 1;
my $out = '';
sub flush { my $done = 0;
  while ($done < length $out) { my $n = syswrite(STDOUT, $out, 1 << 20, $done); defined $n or failed('writing'); $done += $n }
  $out = '' }
sub put { $out .= $_[0]; flush() if length $out > 1 << 20 }
sub padded { my ($size) = @_; "\0" x (-$size % 512) }
sub within { my ($value, $most) = @_; $value < 0 ? 0 : $value > $most ? $most : $value }
sub header { my ($name, $type, $mode, $uid, $gid, $size, $time, $link) = @_;
  my $head = pack('a100 a8 a8 a8 a12 a12 a8 a1 a100 a6 a2 x32 x32 a8 a8 x155 x12', substr($name, 0, 100), sprintf('%07o', $mode & 07777),
    sprintf('%07o', within($uid, 07777777)), sprintf('%07o', within($gid, 07777777)), sprintf('%011o', within($size, 077777777777)),
    sprintf('%011o', within($time, 077777777777)), ' ' x 8, $type, substr($link, 0, 100), "ustar\0", '00', '0000000', '0000000');
  substr($head, 148, 8) = sprintf("%06o\0 ", unpack('%32C*', $head));
  put($head) }
sub record { my ($key, $value) = @_; my $rest = length($key) + length($value) + 3; my $length = $rest;
  $length = $rest + length $length for 1 .. 3;
  "$length $key=$value\n" }
# $file: what its attributes are read of.
sub entry { my ($name, $type, $stat, $size, $link, $file) = @_;
  $name =~ s{^upper/}{} if $is_image;
  my $more = '';
  $more .= record('path', $name) if length $name > 100;
  $more .= record('linkpath', $link) if length $link > 100;
  $more .= record('size', $size) if $size > 077777777777;
  if (defined $file) { for (attributes($file)) { my ($key, $value) = @$_; $more .= record("SCHILY.xattr.$key", $value) if is_kept($key) } }
  if ($more ne '') { header('attributes', 'x', 0644, 0, 0, length $more, 0, ''); put($more . padded(length $more)) }
  header($name, $type, $$stat[2], $$stat[4], $$stat[5], $size, $$stat[9], $link) }
sub attributes { my ($file) = @_; my ($path, $names) = ("$file", "\0" x 65536);
  my $length = syscall($LLISTXATTR, $path, $names, 65536); return () if $length <= 0;
  map { my ($key, $value) = ("$_", "\0" x 65536); my $size = syscall($LGETXATTR, $path, $key, $value, 65536);
    $size < 0 ? () : [$key, substr($value, 0, $size)] } split /\0/, substr($names, 0, $length) }
sub mark { my ($name) = @_; entry($name, '0', [0, 0, 0, 1, 0, 0, 0, 0, 0, 0], 0, '') }
# A file may change, or go, while it is read: it has the size of its beginning.
sub content { my ($name, $as, $stat) = @_;
  sysopen(my $in, $name, 2048) or return ($!{ENOENT} ? 0 : failed($as));
  my @now = stat $in; return 0 if !-f _ || $now[1] != $$stat[1];
  entry($as, '0', \@now, $now[7], '', $name);
  my $left = $now[7];
  while ($left > 0) { flush() if length $out; my $n = sysread($in, $out, $left > 1 << 20 ? 1 << 20 : $left, length $out);
    defined $n or failed($as); last if $n == 0; $left -= $n }
  while ($left > 0) { my $n = $left > 1 << 20 ? 1 << 20 : $left; put("\0" x $n); $left -= $n }
  put(padded($now[7])); 1 }
my %linked; my %placed;
my @files = split /\n/, $files;
while (my ($path, $name) = splice @files, 0, 2) { $placed{'upper' . $path} = $name }
my @pending;
for (@roots) { my @stat = lstat $_ or next; -d _ or next; entry("$_/", '5', \@stat, 0, '', $_) unless $is_image; push @pending, $_ }
while (defined(my $directory = pop @pending)) {
  next unless go($directory) && opendir(my $d, '.');
  my @names = sort grep { $_ ne '.' && $_ ne '..' } readdir $d; closedir $d;
  for (attributes('.')) { mark("$directory/.wh..wh..opq") if $$_[0] eq $opaque && $$_[1] eq 'y' }
  for my $name (@names) {
    my @stat = lstat $name or next;
    my $as = "$directory/$name";
    length $as < 32768 or fail('a path in it has more than 32 KiB');
    # Archives cannot have such a name.
    next if $name =~ /^\.wh\./;
    if (-l _) { my $link = readlink $name; entry($as, '2', \@stat, 0, $link, $name) if defined $link }
    elsif (-d _) { entry("$as/", '5', \@stat, 0, '', $name); push @pending, $as }
    elsif (-c _) { mark("$directory/.wh.$name") if $stat[6] == 0 }
    elsif (-p _) { entry($as, '6', \@stat, 0, '', $name) }
    elsif (-f _) {
      next if exists $placed{$as};
      my $first = $stat[3] > 1 ? $linked{"$stat[0]:$stat[1]"} : undef;
      if (defined $first) { entry($as, '1', \@stat, 0, $is_image ? substr($first, 6) : $first) }
      else { content($name, $as, \@stat) && $stat[3] > 1 and $linked{"$stat[0]:$stat[1]"} = $as } } } }
go('');
for my $as (sort keys %placed) { my $name = "files/$placed{$as}"; my @stat = lstat $name or next; content($name, $as, \@stat) if -f _ }
put("\0" x 1024); flush();
`

const unpacking = String.raw`
my ($buffer, $from) = ('', 0);
sub more { $buffer = substr($buffer, $from); $from = 0; my $n = sysread(STDIN, $buffer, 1 << 20, length $buffer); defined $n or failed('reading'); $n }
sub take { my ($size) = @_;
  while (length($buffer) - $from < $size) { more() or fail('it is incomplete') }
  $from += $size; substr($buffer, $from - $size, $size) }
sub number { my ($text) = @_; $text =~ s/[\0 ]+$//; $text =~ /^[0-7]*$/ or fail('a number in it is malformed'); oct($text || 0) }
sub text { my ($field) = @_; $field =~ s/\0.*//s; $field }
sub read_records { my ($size) = @_; $size <= 1 << 20 or fail('an entry of it has too many attributes');
  my ($data, %found) = take($size); take(-$size % 512);
  while ($data ne '') {
    $data =~ /^(\d{1,7}) / && $1 > length($1) + 2 && $1 <= length $data or fail('its attributes are malformed');
    my $one = substr($data, 0, $1, ''); $one =~ /^\d+ ([^=]+)=(.*)\n\z/s or fail('its attributes are malformed');
    $found{$1} = $2 }
  \%found }
# Whatever an archive says, nothing is made through a link.
my $here = '';
sub shown { my ($name) = @_; $name =~ s/[^ -~]/?/g; substr($name, 0, 200) }
sub enter { my ($parent) = @_; return if $parent eq $here;
  chdir '/' or failed('the root');
  for (split m{/}, $parent) { lstat $_; -d _ or fail('a directory in it is missing: ' . shown($parent)); chdir $_ or failed(shown($parent)) }
  $here = $parent }
sub part { my ($name) = @_; $name =~ s{/$}{}; my @parts = split m{/}, $name, -1;
  fail('it has the name ' . shown($name)) if length $name > 32768 || !@parts || $name =~ /\0/ || grep { $_ eq '' || $_ eq '.' || $_ eq '..' } @parts;
  fail('it has the name ' . shown($name)) unless $parts[0] eq 'upper' || ($parts[0] eq 'files' && @parts <= 2);
  my $last = pop @parts; (join('/', @parts), $last) }
sub attribute { my ($file, $key, $value) = @_; syscall($LSETXATTR, "$file", "$key", "$value", length $value, 0) >= 0 }
sub own { my ($name, $uid, $gid) = @_; my $path = "$name"; syscall($FCHOWNAT, -100, $path, $uid + 0, $gid + 0, 0x100) >= 0 or failed(shown($name)) }
sub device { my ($name, $mode) = @_; my $path = "$name"; syscall($MKNODAT, -100, $path, $mode, 0) >= 0 or failed(shown($name)) }
my (%more, @times);
for (;;) {
  my $head = take(512);
  last if $head !~ /[^\0]/;
  my ($name, $mode, $uid, $gid, $size, $time, $sum, $type, $link, $magic, $prefix) = unpack('a100 a8 a8 a8 a12 a12 a8 a1 a100 a6 x2 x32 x32 x8 x8 a155', $head);
  substr($head, 148, 8) = ' ' x 8;
  $magic eq "ustar\0" && number($sum) == unpack('%32C*', $head) or fail('it is not such an archive');
  ($mode, $uid, $gid, $size, $time) = map { number($_) } $mode, $uid, $gid, $size, $time;
  if ($type eq 'x') { %more = %{read_records($size)}; next }
  ($name, $link, $prefix) = map { text($_) } $name, $link, $prefix;
  $name = "$prefix/$name" if $prefix ne '';
  $name = $more{path} if defined $more{path}; $link = $more{linkpath} if defined $more{linkpath};
  if (defined $more{size}) { $more{size} =~ /^\d{1,15}$/ or fail('a size in it is malformed'); $size = $more{size} + 0 }
  my %attributes = map { /^SCHILY\.xattr\.(.+)/s && is_kept($1) ? ($1 => $more{$_}) : () } keys %more; %more = ();
  $uid < 65536 && $gid < 65536 or fail('a file in it is of an id that containers do not have');
  my ($parent, $last) = part($name);
  $parent ne '' || $type eq '5' or fail('it has the name ' . shown($name));
  $parent ne 'files' || ($type eq '0' && $last =~ /^[0-9a-f]{32}$/) or fail('it has the name ' . shown($name));
  $size == 0 || $type eq '0' or fail('an entry of it has a wrong size');
  enter($parent);
  if ($last =~ /^\.wh\./) {
    if ($last eq '.wh..wh..opq') { attribute('.', $opaque, 'y') or failed('the disk of the service has no extended attributes') }
    else { my $gone = substr($last, 4); $gone ne '' && $gone !~ /^\.{1,2}$|^\.wh\./ or fail('it has the name ' . shown($name)); device($gone, 020000) }
    $size == 0 or fail('an entry of it has a wrong size');
    next }
  if ($type eq '5') { mkdir($last, 0700) or ($!{EEXIST} && $parent eq '' && -d $last) or failed(shown($name)); push @times, [$name, $time] }
  elsif ($type eq '2') { symlink($link, $last) or failed(shown($name)) }
  elsif ($type eq '6') { device($last, 010000) }
  elsif ($type eq '1') { my ($of, $target) = part($link); fail('it has a link to ' . shown($link)) unless $of =~ m{^upper(/|$)};
    enter($of); link($target, '/linked') or failed(shown($link));
    enter($parent); rename('/linked', $last) or failed(shown($name)); next }
  elsif ($type eq '0') {
    sysopen(my $file, $last, 0101 | 0200, 0600) or failed(shown($name));
    my $left = $size;
    while ($left > 0) { more() or fail('it is incomplete') if $from == length $buffer;
      my $n = length($buffer) - $from; $n = $left if $n > $left; my $done = syswrite($file, $buffer, $n, $from);
      defined $done or failed(shown($name)); $from += $done; $left -= $done }
    take(-$size % 512); close $file or failed(shown($name)) }
  else { fail('it has a file of another type: ' . shown($name)) }
  own($last, $uid, $gid);
  chmod($mode & 07777, $last) or failed(shown($name)) unless $type eq '2';
  attribute($last, $_, $attributes{$_}) for sort keys %attributes;
  utime($time, $time, $last) if $type eq '0' }
for (reverse @times) { my ($name, $time) = @$_; my ($parent, $last) = part($name); enter($parent); utime($time, $time, $last) }
chdir '/'; mkdir 'upper', 0755; mkdir 'files', 0755;
opendir(my $d, '/') or failed('the layer'); syscall($SYNCFS, fileno $d);
`
