#!/bin/busybox sh
# The first process of a test guest. What it does costs boot time in every test: builtins of the shell before programs.
/bin/busybox mount -t devtmpfs dev /dev
exec </dev/ttyS0 >/dev/ttyS0 2>&1
export PATH=/bin HOME=/root TERM=dumb
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /tmp
# Nothing of the kernel between what commands print; a panic is shown all the same.
echo 1 >/proc/sys/kernel/printk
echo 1 >/proc/sys/kernel/sysrq
# Nothing that a guest sends by itself may be on the wire.
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6

# Buses first: what is behind them shows when they are there.
modprobe -qa $(cat /sys/bus/pci/devices/*/modalias)
set -- /sys/bus/virtio/devices/*/modalias
[ -e "$1" ] && modprobe -qa $(cat "$@")
# Type 0 is a disk; the driver of CD-ROM drives (sr_mod) is there for who wants it.
for path in /sys/bus/scsi/devices/*/type; do
  read -r type <"$path" && [ "$type" = 0 ] && modprobe -q sd_mod
done 2>/dev/null
modprobe -qa button evdev

# eth0, eth1, ... in the order of the PCI addresses, whichever driver came first.
set --
for device in /sys/bus/pci/devices/*; do
  for path in $device/net/* $device/virtio*/net/*; do
    [ -e "$path" ] && set -- "$@" "${path##*/}"
  done
done
number=0
for name; do
  [ "$name" = "eth$number" ] || isMixed=1
  number=$((number + 1))
done
if [ -n "$isMixed" ]; then
  for name; do ip link set "$name" name "was-$name"; done
  number=0
  for name; do
    ip link set "was-$name" name "eth$number"
    number=$((number + 1))
  done
fi

ip link set lo up
read -r line </proc/cmdline
for word in $line; do
  value=${word#*=}
  case $word in
    pb.host=*) echo "$value" >/proc/sys/kernel/hostname ;;
    pb.ip*=*)
      number=${word%%=*}
      name=eth${number#pb.ip}
      [ "$name" = eth ] && name=eth0
      ip address add "$value" dev "$name"
      ip link set "$name" up
      ;;
  esac
done

# Ends the machine on the power button.
acpid -l /dev/null -p /tmp/acpid.pid

# One write for each number, so that nobody reads an empty file; and no process for the pause.
mkfifo /tmp/never
(
  number=0
  while :; do
    number=$((number + 1))
    echo "$number" 1<>/tmp/counter
    read -r -t 0.1 line
  done
) <>/tmp/never &

# Not the shell's own prompt: it edits lines, with an echo of its own; without one it takes the end of a job in the
# background for the end of its input. A new one is started when this one ends, by Ctrl-C or a mistake in the syntax.
shell='stty -echo rows 50 cols 1000
trap : INT
cd /root
while printf "pb# " && IFS= read -r line; do eval "$line"; done'
# Opened every time, for the end of a session cuts off all that have the terminal open.
while :; do setsid -c sh -c "$shell" </dev/ttyS0 >/dev/ttyS0 2>&1; done
