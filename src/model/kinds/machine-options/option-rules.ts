import { memberOf, membersIn, type OptionMembers } from './option-list.ts'

/** Options without an argument, of all versions. */
export const optionFlags: ReadonlySet<string> = new Set(
  `h help ? version full-screen nographic curses portrait S s snapshot enable-kvm no-kvm no-hax enable-hax no-acpi no-hpet
   no-reboot no-shutdown usb win2k-hack rtc-td-hack daemonize singlestep mlock no-fd-bootchk no-quit no-frame alt-grab
   ctrl-grab sdl old-param semihosting nodefaults no-user-config nodefconfig enable-fips no-kvm-irqchip no-kvm-pit
   no-kvm-pit-reinjection tdf xen-create xen-attach xen-domid-restrict preconfig mem-prealloc enable-sync-profile
   show-cursor localtime audio-help only-migratable async-teardown perfmap jitdump std-vga no-code-copy enable-kqemu
   kernel-kqemu no-kqemu`.split(/\s+/),
)

/** Options with one argument, of all versions. Whether other options take an argument is unknown. */
export const takingArgument: ReadonlySet<string> = new Set(
  `D L M accel acpitable action add-fd append audio audiodev balloon bios blockdev boot bootp bt cdrom chardev chroot clock
   compat cpu d debugcon device dfilter display drive dtb dump-vmstate echr fda fdb fsdev fw_cfg g gdb global hda hdachs hdb
   hdc hdd icount incoming initrd iscsi k kernel loadvm m machine mem-path mon monitor msg mtdblock name net netdev nic numa
   nvram object option-rom osk overcommit parallel pcidevice pflash pidfile plugin prom-env qmp qmp-pretty qtest qtest-log
   readconfig realtime redir rotate rtc run-with runas sandbox sd seed semihosting-config serial set shm-cache smb smbios smp
   soundhw spice startdate tb-size tftp tpmdev trace usbdevice uuid vga virtfs virtfs_synth virtioconsole vnc watchdog
   watchdog-action writeconfig xen-domid`.split(/\s+/),
)

/** Whether an argument is allowed outside local mode. */
type Rule = (argument: string) => boolean

// No path: clients must not read or write files of the host.
const plain: Rule = (value) => !/[/{\\]/.test(value)
const oneOf =
  (...words: readonly string[]): Rule =>
  (argument) =>
    words.includes(argument)
/** Allows these members, without paths. */
const only = (names: string): Rule => {
  const known = new Set(['', ...names.split(' ')])
  return (argument) => plain(argument) && membersIn(argument).every(([name]) => known.has(name))
}
const noRom = (members: OptionMembers) => members.every(([name]) => !/rom|file|path/i.test(name))

const devices: ReadonlySet<string> = new Set(
  `usb-tablet usb-mouse usb-kbd usb-hub usb-wacom-tablet qemu-xhci nec-usb-xhci usb-ehci piix3-usb-uhci piix4-usb-uhci
   ich9-usb-ehci1 ich9-usb-uhci1 ich9-usb-uhci2 ich9-usb-uhci3 pci-ohci virtio-rng-pci virtio-rng-device
   virtio-balloon-pci virtio-balloon-device virtio-vga virtio-gpu-pci virtio-keyboard-pci virtio-mouse-pci
   virtio-tablet-pci VGA qxl-vga qxl cirrus-vga vmware-svga bochs-display ramfb isa-debug-exit i6300esb ib700 pvpanic
   intel-iommu intel-hda ich9-intel-hda hda-duplex hda-output hda-micro AC97 pci-bridge pcie-root-port
   i82801b11-bridge pcie-pci-bridge ioh3420 vmgenid`.split(/\s+/),
)

const isSafeDevice: Rule = (argument) => {
  const members = membersIn(argument)
  const model = memberOf(members, 'driver') ?? memberOf(members, '') ?? ''
  return plain(argument) && devices.has(model) && noRom(members)
}
/** `driver.property=value`, or its three parts by name. */
const isSafeGlobal: Rule = (argument) => {
  const [[name, value] = ['', '']] = membersIn(argument)
  const property = name.includes('.') ? name : (memberOf(membersIn(argument), 'property') ?? '')
  return plain(argument) && property !== '' && value !== '' && noRom([[property, value]])
}
const machineMembers =
  'type accel smm usb vmport kernel_irqchip kernel-irqchip hpet acpi graphics sata pit smbus i8042 mem-merge ' +
  'dump-guest-core gic-version virtualization secure highmem its iommu ras mte'

/** The options that are allowed outside local mode. */
const allowed: Readonly<Record<string, Rule>> = {
  ...Object.fromEntries(
    `nographic enable-kvm no-kvm no-hax enable-hax no-acpi no-hpet no-reboot usb win2k-hack rtc-td-hack singlestep
     no-fd-bootchk nodefaults no-user-config localtime no-kvm-irqchip no-kvm-pit no-kvm-pit-reinjection tdf`
      .split(/\s+/)
      .map((name) => [name, () => true]),
  ),
  cpu: plain,
  machine: only(machineMembers),
  M: only(machineMembers),
  accel: (argument) =>
    only('accel thread tb-size kernel-irqchip one-insn-per-tb split-wx')(argument) && isUsual(argument),
  smp: only('cpus maxcpus sockets dies clusters cores threads'),
  boot: only('order once menu strict reboot-timeout splash-time'),
  rtc: only('base clock driftfix'),
  icount: only('shift align sleep'),
  vga: oneOf('none', 'std', 'cirrus', 'vmware', 'qxl', 'virtio', 'tcx', 'cg3'),
  display: oneOf('none'),
  k: plain,
  uuid: plain,
  watchdog: plain,
  'watchdog-action': plain,
  action: plain,
  device: isSafeDevice,
  global: isSafeGlobal,
  usbdevice: oneOf('tablet', 'mouse', 'keyboard', 'wacom-tablet'),
  serial: oneOf('none', 'null', 'vc'),
  parallel: oneOf('none', 'null', 'vc'),
  net: oneOf('none'),
  nic: oneOf('none'),
  // Texts with slashes are allowed, because members that name files are not in this list.
  smbios: (argument) => membersIn(argument).every(([name]) => smbiosMembers.has(name)),
  fw_cfg: (argument) => membersIn(argument).every(([name]) => ['', 'name', 'string'].includes(name)),
}
const smbiosMembers: ReadonlySet<string> = new Set(
  `type vendor version date release uefi manufacturer product serial uuid sku family location asset sock_pfx part loc_pfx
   bank speed value max-speed current-speed processor-id external_reference internal_reference connector_type port_type
   designation kind instance pcidev`.split(/\s+/),
)
const isUsual: Rule = (argument) =>
  membersIn(argument).every(([name, value]) => (name !== '' && name !== 'accel') || /^(kvm|tcg)$/.test(value))

/** Whether an option is allowed outside local mode; 'argument': only its argument is not. */
export function judgeOptions(name: string, argument: string): 'allowed' | 'argument' | 'option' {
  const rule = Object.hasOwn(allowed, name) ? allowed[name] : undefined
  if (rule === undefined) return 'option'
  return rule(argument) ? 'allowed' : 'argument'
}
