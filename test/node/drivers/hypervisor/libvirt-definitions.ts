/** A small PC; `devices`: what it has beside its serial port. */
export interface Pc {
  readonly name: string
  readonly uuid: string
  readonly devices?: string
  readonly boot?: 'hd' | 'network'
}

export const pcDefinition = ({ name, uuid, devices = '', boot = 'hd' }: Pc): string => `
<domain type='qemu'>
  <name>${name}</name>
  <uuid>${uuid}</uuid>
  <memory unit='MiB'>32</memory>
  <os><type arch='x86_64' machine='pc'>hvm</type><boot dev='${boot}'/></os>
  <features><acpi/></features>
  <on_reboot>restart</on_reboot>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <controller type='usb' model='none'/>
    <serial type='pty'/>
    <memballoon model='none'/>
    ${devices}
  </devices>
</domain>`

export const ideDisk = (file: string, format = 'raw'): string => `
    <disk type='file' device='disk'>
      <driver name='qemu' type='${format}'/>
      <source file='${file}'/>
      <target dev='hda' bus='ide'/>
    </disk>`

/** A workstation as virt-manager makes one: PCI Express, UEFI, SPICE, an adapter of its own. */
export const workstation = ({ name, uuid, directory }: { name: string; uuid: string; directory: string }): string => `
<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>${name}</name>
  <uuid>${uuid}</uuid>
  <title>A &amp; B &lt;"workstation"&gt;</title>
  <metadata>
    <libosinfo:libosinfo xmlns:libosinfo="http://libosinfo.org/xmlns/libvirt/domain/1.0">
      <libosinfo:os id="http://debian.org/debian/12"/>
    </libosinfo:libosinfo>
  </metadata>
  <memory unit='KiB'>65536</memory>
  <currentMemory unit='KiB'>65536</currentMemory>
  <vcpu placement='static'>1</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
    <nvram template='/usr/share/OVMF/OVMF_VARS_4M.fd'>${directory}/variables.fd</nvram>
    <boot dev='hd'/>
  </os>
  <features><acpi/><apic/><vmport state='off'/></features>
  <clock offset='utc'>
    <timer name='rtc' tickpolicy='catchup'/>
    <timer name='hpet' present='no'/>
  </clock>
  <pm><suspend-to-mem enabled='no'/><suspend-to-disk enabled='no'/></pm>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' discard='unmap'/>
      <source file='${directory}/disk.qcow2'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <disk type='file' device='cdrom'>
      <driver name='qemu' type='raw'/>
      <target dev='sda' bus='sata'/>
      <readonly/>
    </disk>
    <controller type='usb' model='qemu-xhci' ports='15'/>
    <controller type='pci' model='pcie-root'/>
    <controller type='pci' model='pcie-root-port'/>
    <controller type='pci' model='pcie-root-port'/>
    <interface type='network'>
      <mac address='52:54:00:12:34:56'/>
      <source network='default'/>
      <bandwidth><inbound average='1000'/></bandwidth>
      <model type='virtio'/>
      <driver queues='2'/>
    </interface>
    <console type='pty'/>
    <channel type='unix'><source mode='bind'/><target type='virtio' name='org.qemu.guest_agent.0'/></channel>
    <channel type='spicevmc'><target type='virtio' name='com.redhat.spice.0'/></channel>
    <input type='tablet' bus='usb'/>
    <graphics type='spice' autoport='yes'><listen type='address'/><image compression='off'/></graphics>
    <sound model='ich9'/>
    <video><model type='virtio'/></video>
    <redirdev bus='usb' type='spicevmc'/>
    <memballoon model='virtio'/>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
  </devices>
  <qemu:commandline>
    <qemu:arg value='-msg'/>
    <qemu:arg value='guest-name=on'/>
  </qemu:commandline>
</domain>`
