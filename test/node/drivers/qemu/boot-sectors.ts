/** Programs for a PC that BIOS boots from the first sector of a disk. Each writes `>` on the serial port when it runs. */

const prompt = 'ba f8 03 b0 3e ee' // mov dx, 0x3f8; mov al, '>'; out dx, al
const halt = 'f4 eb fd' // hlt; jmp $-1
const awaitKey = 'f4 ba fd 03 ec a8 01 74 f7 ba f8 03 ec' // hlt; until bit 0 of port 0x3fd; in al, 0x3f8
const awaitKeyAwake = awaitKey.replace('f4', '90') // nop
const powerOff = 'ba 04 06 b8 00 20 ef' // out 0x604, 0x2000: ACPI's S5 of both PCs

/** Uses a whole processor. */
export const spinning = program(prompt, 'eb fe')

/** Says the next letter for every byte that comes, from `a` on: it shows whether it is the same run as before. */
const countingBy = (waiting: string) => [
  ...['fb', prompt, 'b3 61'], // sti; mov bl, 'a'
  waiting,
  'ba f8 03 88 d8 ee', // out 0x3f8, bl
  'fe c3 eb e9', // inc bl; again
]
export const counting = program(...countingBy(awaitKey))

/** The same, once it has written other numbers to each address from 1 MB to 127 MB: its memory cannot be kept in less. */
export const countingFull = program(
  'fa 31 c0 8e d8 66 0f 01 16 5e 7c', // cli; ds = 0; lgdt [0x7c5e]
  '0f 20 c0 0c 01 0f 22 c0 ba 08 00 8e c2 24 fe 0f 22 c0', // es has no limit, from protected mode and back
  '66 bf 00 00 10 00', // mov edi, 0x100000
  '66 69 db 0d 66 19 00 66 43 26 67 66 89 1f', // ebx = ebx * 1664525 + 1; mov [es:edi], ebx
  '66 83 c7 04 66 81 ff 00 00 f0 07 72 e5', // until edi is 0x7f00000
  ...countingBy(awaitKey),
  '0f 00 64 7c 00 00 00 00 00 00 00 00 00 00', // at 0x5e: 16 bytes at 0x7c64, of which the first 8 are none
  'ff ff 00 00 00 92 cf 00', // data of 4 GB
)

/** The same as a BIOS, for a machine without a disk. Without one nothing wakes the processor. */
export const countingBios = bios(...countingBy(awaitKeyAwake))

/** Powers itself off when a byte comes. */
export const leaving = program('fb', prompt, awaitKey, powerOff, halt)

/** Tells the host that it panics when a byte comes. */
export const panicking = program('fb', prompt, awaitKey, 'ba 05 05 b0 01 ee', halt) // out 0x505, 1

/** Powers itself off when its power button is pressed. */
export const obedient = program(
  'fa ba 02 06 b8 00 01 ef', // cli; out 0x602, 0x100: the button is noted
  prompt,
  'ba 00 06 ed a9 00 01 74 fa', // until bit 8 of port 0x600
  powerOff,
  halt,
)

/** Has the processor give up: without an interrupt table its fault has a fault that has a fault. */
export const crashing = program(prompt, '0f 01 1e 10 7c cc 00 00 00 00 00 00 00 00 00 00') // lidt [zeros]; int3

/** Writes itself to the second sector, then says `w`. */
export const writing = program(
  prompt,
  'b8 01 03 31 db 8e c3 bb 00 7c b9 02 00 ba 80 00 cd 13', // int 13h, function 3
  'ba f8 03 b0 77 ee',
  halt,
)

/** Writes from 1 MB on without end, 32 KB at a time, once a byte has come. */
export const filling = program(
  ...['fb 31 c0 8e d8', prompt, awaitKey],
  'b8 00 43 be 80 7d b2 80 cd 13', // int 13h, function 0x43 with the packet at 0x7d80
  '83 06 88 7d 40 83 16 8a 7d 00 eb ea', // 64 sectors on
)

/** 64 KB that end at the reset vector. */
function bios(...code: readonly string[]): Buffer {
  const image = Buffer.alloc(64 << 10)
  Buffer.from(`fa${code.join('').replaceAll(' ', '').slice(2)}`, 'hex').copy(image)
  Buffer.from('ea000000f0', 'hex').copy(image, 0xfff0) // jmp 0xf000:0
  return image
}

function program(...code: readonly string[]): Buffer {
  const sector = Buffer.alloc(512)
  Buffer.from(code.join('').replaceAll(' ', ''), 'hex').copy(sector)
  // Size, number of sectors, address, first sector.
  Buffer.from('10004000007c00000008000000000000', 'hex').copy(sector, 0x180)
  sector.writeUInt16LE(0xaa55, 510)
  return sector
}
