import { expect, test } from 'vitest'
import { type Finding, preventedIn } from '../../../runtime/browser/state/prevented.ts'

const check = (name: string, ...prevents: string[]): Finding => ({
  ...{ name, status: 'warning', found: 'not found', fix: `install ${name}` },
  ...(prevents.length > 0 && { prevents }),
})
const kindsOf = (...machines: Finding[][]) =>
  [...preventedIn(machines.map((checks) => ({ ok: true, checks })))].map(
    ([kind, lacks]) => `${kind}: ${lacks.map(({ name }) => name)}`,
  )

test('a kind cannot run when each machine lacks its emulator', () => {
  const lacking = [
    check('KVM'),
    check('VirtualBox', 'hypervisor'),
    check('libvirt', 'hypervisor'),
    check('QEMU', 'machine'),
  ]
  expect(kindsOf(lacking).sort()).toEqual(['hypervisor: VirtualBox,libvirt', 'machine: QEMU'])
  expect(kindsOf(lacking, [check('libvirt', 'hypervisor')])).toEqual(['hypervisor: VirtualBox,libvirt'])
  expect(kindsOf(lacking, [])).toEqual([])
  expect(kindsOf()).toEqual([])
})
