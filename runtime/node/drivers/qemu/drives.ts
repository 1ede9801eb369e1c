import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { type DiskInterface, type DiskSlot, diskSlots } from '../../../../src/model/kinds/machine-emulator.ts'
import { escaped } from '../../../../src/model/kinds/machine-options/option-list.ts'
import type { BinaryFacts } from './probe.ts'

/** A disk of the guest. */
export interface MachineDisk {
  readonly slot: DiskSlot
  readonly path: string
  readonly format: string
  readonly interface: DiskInterface
}

export type Firmware =
  /** An image that is mapped at the reset vector. */
  | { readonly type: 'bios'; readonly path: string }
  /** Flash: read-only code, and variables that the guest can write. */
  | { readonly type: 'uefi'; readonly code: string; readonly vars?: string }

/** Arguments, and the number of PCI devices in them. */
export type DrivePart = { readonly args: readonly string[]; readonly pciDevices: number }

/** The id of the drive, for changes of the medium. */
export const cdromId = 'pb-cdrom'

export const diskId = (slot: DiskSlot): string => `pb-${slot}`

export function firmwareArguments(firmware: Firmware | undefined): readonly string[] {
  if (firmware === undefined) return []
  if (firmware.type === 'bios') return ['-bios', firmware.path]
  const { code, vars } = firmware
  const flash = (unit: number, file: string, more: string) => [
    '-drive',
    `file=${escaped(file)},if=pflash,unit=${unit},format=raw${more}`,
  ]
  return [...flash(0, code, ',readonly=on'), ...(vars === undefined ? [] : flash(1, vars, ''))]
}

interface Cdrom {
  /** null: an empty drive, on a PC. */
  readonly path: string | null
  readonly isPc: boolean
  readonly disks: readonly MachineDisk[]
  /** Whether the options use its place. */
  readonly isTaken: boolean
}

/** The CD-ROM drive. A PC has one that can be empty; other machines have one if there is a medium. */
export function cdromArguments({ path, isPc, disks, isTaken }: Cdrom): readonly string[] {
  const hdc = disks.find(({ slot }) => slot === 'hdc')
  if (path !== null && hdc !== undefined)
    throw conflict('cdrom_image: the CD-ROM drive is hdc, which is used by hdc_disk_image; remove one of them')
  if (path === null && (!isPc || isTaken || hdc?.interface === 'ide')) return []
  // The format is always raw: with a detected format an image could name files of the host.
  const file = path === null ? '' : `file=${escaped(path)},format=raw,`
  return ['-drive', `${file}${isPc ? 'if=ide,' : ''}index=2,media=cdrom,id=${cdromId}`]
}

export function diskArguments(disks: readonly MachineDisk[], isPc: boolean, facts: BinaryFacts): DrivePart {
  const scsi = ['lsi53c895a', 'virtio-scsi-pci'].find((model) => facts.devices.has(model))
  const isScsi = isPc && scsi !== undefined
  const parts = diskSlots.flatMap((slot) => {
    const disk = disks.find((known) => known.slot === slot)
    return disk === undefined ? [] : [diskPart(disk, isScsi, facts)]
  })
  // One controller for all SCSI disks; it must come first.
  const controller = isScsi && disks.some((disk) => disk.interface === 'scsi')
  return {
    args: [...(controller ? ['-device', `${scsi},id=pb-scsi`] : []), ...parts.flatMap(({ args }) => args)],
    pciDevices: parts.reduce((sum, { pciDevices }) => sum + pciDevices, controller ? 1 : 0),
  }
}

function diskPart(disk: MachineDisk, isScsi: boolean, { devices }: BinaryFacts): DrivePart {
  const index = diskSlots.indexOf(disk.slot)
  const id = diskId(disk.slot)
  const drive = (as: string) => [
    '-drive',
    `file=${escaped(disk.path)},if=${as},media=disk,id=${id},format=${disk.format}`,
  ]
  switch (disk.interface) {
    case 'sata': {
      const model = devices.has('ide-hd') ? 'ide-hd' : 'ide-drive'
      const bus = ['-device', `ahci,id=pb-ahci${index}`]
      return {
        args: [...bus, ...drive('none'), '-device', `${model},drive=${id},bus=pb-ahci${index}.0,id=${id}-disk`],
        pciDevices: 1,
      }
    }
    case 'nvme':
      return { args: [...drive('none'), '-device', `nvme,drive=${id},serial=${id},id=${id}-disk`], pciDevices: 1 }
    case 'scsi':
      // QEMU 3 removed `if=scsi` from PCs; other machines have a controller on board.
      return isScsi
        ? {
            args: [...drive('none'), '-device', `scsi-hd,drive=${id},bus=pb-scsi.0,scsi-id=${index},id=${id}-disk`],
            pciDevices: 0,
          }
        : { args: drive(`scsi,index=${index}`), pciDevices: 0 }
    case 'none':
      return { args: drive('none'), pciDevices: 0 }
    default:
      return { args: drive(`${disk.interface},index=${index}`), pciDevices: disk.interface === 'virtio' ? 1 : 0 }
  }
}
