/**
 * The part of the holder's script that joins adapters to the panel (rtnetlink(7)). An adapter is a veth device. Its peer is in the
 * network namespace of the panel, where tc redirects its frames to a TAP device, and those of that back. The keeper has the descriptor
 * of the TAP device, and may redirect them to the peer of another adapter instead: the patch cable.
 */
export const panelScript = String.raw`
my ($control, $links, $asked) = (undef, undef, 0);
sub attribute { my ($type, $value) = @_; pack('S S a* x!4', 4 + length $value, $type, $value) }
sub text { attribute($_[0], "$_[1]\0") }
sub ask { my ($what, $type, $flags, @parts) = @_; my $body = join '', @parts;
  $links or socket($links, 16, 3, 0) or fail('netlink');
  syswrite($links, pack('L S S L L', 16 + length $body, $type, 5 | $flags, ++$asked, 0) . $body) or fail($what);
  sysread($links, my $answer, 8192) or fail($what);
  my $error = unpack('x16 l', $answer); if ($error) { $! = -$error; fail($what) } }
# A guest may have frames as long as it likes: the MTU of the outer end is the longest. The inner one cannot be up yet.
sub pair { my ($outer, @inner) = @_; my $queues = attribute(31, pack('L', 1)) . attribute(32, pack('L', 1));
  my $peer = attribute(1, join '', pack('x16'), $queues, @inner);
  ask("the device $outer", 16, 0x600, pack('C x S l L L', 0, 0, 0, 1, 1), $queues, text(3, $outer), attribute(4, pack('L', 65535)), attribute(18, text(1, 'veth') . attribute(2, $peer))) }
sub index_of { unpack('i', request(0x8933, $_[0], '', 'the index')) }
sub redirect { my ($from, $to) = @_;
  ask('clsact', 36, 0x600, pack('C x3 l L L L', 0, $from, 0xffff0000, 0xfffffff1, 0), text(1, 'clsact'));
  my $mirred = attribute(2, pack('L L l l l l L', 0, 0, 4, 0, 0, 1, $to));
  my $all = pack('C C C x S S s s L a16', 1, 0, 1, 0, 0, 0, 0, 0, '');
  my $options = attribute(5, $all) . attribute(7, attribute(1, text(1, 'mirred') . attribute(2, $mirred)));
  ask('redirect', 44, 0x600, pack('C x3 l L L L', 0, $from, 0, 0xfffffff2, 1 << 16 | 0x0300), text(1, 'u32'), attribute(2, $options)) }
# The namespaces go on without this process: the keeper has their descriptors. Trials show whether the kernel has all parts, and whether it
# makes the namespaces of a container in those of the panel: the part of it returns. It sets no limits, which all containers would have.
sub make_panel {
  my $trial = fork; defined $trial or fail('fork');
  if (!$trial) { $limits = ''; return }
  waitpid($trial, 0); $? == 0 or leave(end_of($?));
  call('the network namespace', $UNSHARE, 0x40000000);
  put("/proc/sys/net/ipv6/conf/$_/disable_ipv6", '1') for grep { -e "/proc/sys/net/ipv6/conf/$_" } 'default', 'all';
  pair('one', text(3, 'other')); redirect(index_of('one'), index_of('other'));
  ask('remove', 17, 0, pack('C x S l L L', 0, 0, index_of('one'), 0, 0));
  for ('user', 'net') { open(my $f, '<', "/proc/self/ns/$_") or fail($_); hand_over($_, fileno $f) }
  hand_over('netlink', fileno $links);
  leave(0) }
# Has the keeper's end of every adapter, and then the adapters, in the namespaces of the process that says so.
sub plug_in { my ($of, $spaced, $plug) = @_;
  my ($tun, $crun, $signals, $count, @ports) = @rest[3 * $count + 1 .. $#rest]; my @taps;
  for my $port (0 .. $count - 1) { sysopen(my $tap, $tun, 2 | 2048) or fail($tun); tap_of($tap, "t$$.$port"); up("t$$.$port"); push @taps, $tap }
  sysread($spaced, my $byte, 1) or return;
  for my $port (0 .. $count - 1) { my ($name, $mac) = @ports[2 * $port, 2 * $port + 1];
    pair("p$$.$port", text(3, $name), attribute(1, pack('H12', join '', split /:/, $mac)), attribute(19, pack('L', $of))) }
  syswrite $plug, 'x';
  for my $port (0 .. $count - 1) { my ($outer, $tap) = (index_of("p$$.$port"), index_of("t$$.$port"));
    redirect($outer, $tap); redirect($tap, $outer) }
  close $_ for $control, $links;
  # Only with a container that runs: the keeper takes adapters for a sign of it.
  sysread($spaced, $byte, 1) or return;
  hand_over($ports[2 * $_], fileno $taps[$_]) for 0 .. $count - 1;
  syswrite $plug, 'x' }
`
