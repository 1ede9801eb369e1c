#!/usr/bin/env bash
# Makes small guests of Debian's packages, for docs/machines.md and docs/containers.md: a kernel, two initial RAM disks that it can
# boot with, a disk, and three images of containers.
#
#   examples/guests/make.sh [DIRECTORY]      (default: ./guests)
#
#   vmlinuz      the kernel of linux-image-cloud-amd64
#   busybox.img  a shell with the programs of BusyBox: a host
#   frr.img      the routing daemons of FRR, with vtysh on the console: a router
#   frr.qcow2    the same router as a disk that boots by itself; only where qemu-img is installed
#   busybox.tar  the shell as an image of containers
#   frr.tar      the router as an image of containers; its configuration is /etc/frr/frr.conf
#   iperf3.tar   the shell with iperf3, which measures the way to another host, as an image of containers
#
# It needs Debian (apt-get, dpkg-deb) and no privilege: packages are downloaded and unpacked, not installed. What was downloaded
# is kept in DIRECTORY/packages, and not downloaded again.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-guests}/packages"
out=$(cd "${1:-guests}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# dependencies PACKAGE [--recurse]: lines "PACKAGE DEPENDENCY".
dependencies() {
  apt-cache depends --important "$@" | sed -e 's/^ *|*\(Pre\)*Depends: /=/' -e '/^[= ]*</d' |
    awk '/^=/ { print name, substr($0, 2); next } { name = $1 }'
}

# The library packages that a package needs, and those that these need.
libraries() {
  dependencies "$1" --recurse | awk -v first="$1" '
    { needs[$1] = needs[$1] " " $2 }
    function walk(name, list, count, i) {
      count = split(needs[name], list, " ")
      for (i = 1; i <= count; i++) if (list[i] ~ /^lib/ && !(list[i] in seen)) { seen[list[i]] = 1; print list[i]; walk(list[i]) }
    }
    END { walk(first) }'
}

# fetch NAME...: unpacks packages into $work/root.
fetch() {
  local name missing=() as_root=()
  for name; do compgen -G "$out/packages/${name}_*.deb" >/dev/null || missing+=("$name"); done
  # The user _apt may not write here, and apt-get would warn of that for every file.
  [ "$(id -u)" != 0 ] || as_root=(-o APT::Sandbox::User=root)
  [ ${#missing[@]} = 0 ] || (cd "$out/packages" && apt-get download -qq "${as_root[@]}" "${missing[@]}")
  for name; do dpkg-deb -x "$(compgen -G "$out/packages/${name}_*.deb" | tail -n 1)" "$work/root"; done
}

echo 'packages of Debian ...'
kernel=$(dependencies linux-image-cloud-amd64 | awk '$2 ~ /^linux-image-/ { print $2; exit }')
[ -n "$kernel" ] || { echo "apt knows no linux-image-cloud-amd64: run apt-get update first" >&2; exit 1; }
mapfile -t needed < <({ libraries frr; libraries iperf3; } | sort -u)
fetch "$kernel" busybox-static frr iperf3 libpam-modules syslinux mtools "${needed[@]}"
root=$work/root
release=${kernel#linux-image-}
busybox=$root/bin/busybox
[ -e "$busybox" ] || busybox=$root/usr/bin/busybox

# tree NAME: the files that both guests have: BusyBox, and the driver virtio_net with the modules that it needs, and that of packet sockets, for DHCP.
tree() {
  local to=$work/$1 module file
  mkdir -p "$to"/{bin,dev,etc,lib/modules,proc,root,run,sys,tmp}
  cp "$busybox" "$to/bin/busybox"
  ln -s bin "$to/sbin"
  for module in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net af_packet; do
    file=$(find "$root" -path "*/modules/$release/*" -name "$module.ko*")
    case $file in
      '') continue ;; # built into this kernel
      *.xz) "$busybox" unxz -c "$file" ;;
      *) cat "$file" ;;
    esac >"$to/lib/modules/$module.ko"
  done
  install -m 755 "$here/init" "$to/init"
  install -m 755 "$here/$1" "$to/bin/guest"
  install -m 755 "$here/dhcp" "$to/bin/dhcp"
}

# pack NAME: an archive in the form that the kernel unpacks.
pack() {
  (cd "$work/$1" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$out/$1.img.part"
  mv "$out/$1.img.part" "$out/$1.img"
}

tree busybox
pack busybox

tree frr
mkdir -p "$work/frr"/{usr/lib/frr,usr/bin,etc/frr,etc/pam.d,lib64,usr/lib/libraries}
printf 'root:x:0:0:root:/root:/bin/sh\nfrr:x:100:100::/run/frr:/bin/false\n' >"$work/frr/etc/passwd"
printf 'root:x:0:\nfrr:x:100:\nfrrvty:x:101:frr,root\n' >"$work/frr/etc/group"
for daemon in zebra staticd ospfd ospf6d bgpd; do cp "$root/usr/lib/frr/$daemon" "$work/frr/usr/lib/frr/"; done
[ ! -e "$root/usr/lib/frr/mgmtd" ] || cp "$root/usr/lib/frr/mgmtd" "$work/frr/usr/lib/frr/"
cp "$root/usr/bin/vtysh" "$work/frr/usr/bin/"
# vtysh asks PAM who may use it: everybody at the console.
cp "$(find "$root" -name pam_permit.so)" "$work/frr/usr/lib/libraries/"
printf '%s required /usr/lib/libraries/pam_permit.so\n' auth account >"$work/frr/etc/pam.d/frr"
# The libraries that these programs load, as the loader of the unpacked C library finds them.
loader=$(find "$root" -name 'ld-linux-x86-64.so.2' | head -n 1)
paths=$(find "$root" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd:)
# loaded TREE DIRECTORY PROGRAM...: copies the libraries of programs into a directory of a tree, and the loader.
loaded() {
  local to=$work/$1 directory=$2 program
  shift 2
  mkdir -p "$to"/{lib64,"$directory"}
  cp -L "$loader" "$to/lib64/"
  for program; do
    "$loader" --library-path "$paths" --list "$program" | sed -n 's/.* => \(\/.*\) (0x.*/\1/p'
  done | sort -u | xargs -I{} cp -L {} "$to/$directory/"
}
loaded frr usr/lib/libraries "$work/frr/usr/lib/frr/"* "$work/frr/usr/bin/vtysh"
pack frr

cp "$(find "$root/boot" -name "vmlinuz-$release")" "$out/vmlinuz.part"
mv "$out/vmlinuz.part" "$out/vmlinuz"

# disk NAME: a disk with a FAT file system, from which SYSLINUX starts the kernel with that initial RAM disk.
disk() {
  local image=$work/$1.disk files=("$out/vmlinuz" "$out/$1.img" "$work/syslinux.cfg")
  printf '%s\n' 'SERIAL 0 115200' 'DEFAULT guest' 'LABEL guest' 'LINUX vmlinuz' "INITRD $1.img" \
    'APPEND console=ttyS0 quiet pb.host=router' >"$work/syslinux.cfg"
  local sectors=$((($(cat "${files[@]}" | wc -c) / 1048576 + 8) * 2048))
  truncate -s $((sectors * 512)) "$image"
  # What SYSLINUX is installed with, and calls itself.
  local PATH=$root/usr/bin:$PATH
  mformat -i "$image" -T $sectors -h 16 -s 63 ::
  mcopy -i "$image" "${files[@]}" ::
  syslinux --install "$image"
  qemu-img convert -c -O qcow2 "$image" "$out/$1.qcow2.part"
  mv "$out/$1.qcow2.part" "$out/$1.qcow2"
}
if command -v qemu-img >/dev/null; then disk frr; else echo 'frr.qcow2 is left out: qemu-img is not installed (package qemu-utils)' >&2; fi

# image NAME COMMAND: an image of containers with the files of NAME, in the form of `docker save` (OCI image specification).
image() {
  local from=$work/$1 to=$work/$1.image sum
  rm -rf "$from"/init "$from"/lib/modules "$from"/bin/{dhcp,guest}
  for name in $("$busybox" --list); do [ -e "$from/bin/$name" ] || ln -s busybox "$from/bin/$name"; done
  [ -e "$from/etc/passwd" ] || printf 'root:x:0:0:root:/root:/bin/sh\n' >"$from/etc/passwd"
  mkdir -p "$to"
  tar -C "$from" --owner=0 --group=0 --numeric-owner --sort=name --mtime=@0 -cf "$to/layer.tar" .
  sum=$(sha256sum "$to/layer.tar" | cut -d' ' -f1)
  printf '{"architecture":"amd64","os":"linux","config":{"Cmd":["%s"],"WorkingDir":"/"},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$2" "$sum" >"$to/config.json"
  printf '[{"Config":"config.json","RepoTags":["%s:latest"],"Layers":["layer.tar"]}]' "$1" >"$to/manifest.json"
  tar -C "$to" --sort=name --mtime=@0 -cf "$out/$1.tar.part" manifest.json config.json layer.tar
  mv "$out/$1.tar.part" "$out/$1.tar"
}
install -m 755 "$here/frr-container" "$work/frr/bin/frr-container"
cp -a "$work/busybox" "$work/iperf3"
mkdir -p "$work/iperf3/usr/bin"
cp "$root/usr/bin/iperf3" "$work/iperf3/usr/bin/"
loaded iperf3 usr/lib "$root/usr/bin/iperf3"
image busybox /bin/sh
image iperf3 /bin/sh
image frr /bin/frr-container
ls -l "$out" | sed -n 's/^-[^ ]* *[0-9]* [^ ]* *[^ ]* *\([0-9]*\) .* \([^ ]*\)$/\1 bytes  \2/p'
