import { mkdir, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { allowPassage, guestUserIn } from '../../../../runtime/node/drivers/hypervisor/libvirt/guest-user.ts'
import {
  aclOfMode,
  allowing,
  decodeAcl,
  encodeAcl,
  permissionsOf,
  readAcl,
  writeAcl,
} from '../../../../runtime/node/os/system/acl.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { requireThing } from '../../../support/require.ts'

const guest = { uid: 64055, gid: 64055 }
const other = 64056

/** Some file systems have no access control lists. */
async function obstacle(): Promise<string | undefined> {
  const directory = await freshDirectory()
  try {
    writeAcl(directory, allowing(aclOfMode(0o700), guest.uid, 1))
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

test('one more user may traverse, and no other user gets more rights', () => {
  const once = allowing(aclOfMode(0o700), guest.uid, 1)
  expect(permissionsOf(once, guest.uid)).toBe(1)
  expect(permissionsOf(once, other)).toBe(0)
  expect(decodeAcl(encodeAcl(once))).toEqual(once)
  expect(allowing(once, guest.uid, 1)).toEqual(once)
  const masked = [...once.filter(({ tag }) => tag !== 16), { tag: 16, permissions: 0, id: 0xffffffff }]
  const both = allowing([...masked, { tag: 2, permissions: 7, id: other }], guest.uid, 1)
  expect([permissionsOf(both, guest.uid), permissionsOf(both, other)]).toEqual([1, 0])
})

test('the user of guests is the one that libvirt reports', () => {
  const label = (model: string, user: string) =>
    `<secmodel><model>${model}</model><doi>0</doi><baselabel type='kvm'>${user}</baselabel></secmodel>`
  const capabilities = (...models: string[]) => `<capabilities><host>${models.join('')}</host></capabilities>`
  expect(guestUserIn(capabilities(label('apparmor', 'libvirt-x'), label('dac', '+64055:+64055')))).toEqual(guest)
  expect(guestUserIn(capabilities(label('none', '')))).toBeUndefined()
})

describe('a directory of ours', () => {
  test('lets guests reach the files in it', async ({ skip }) => {
    const acl = requireThing('acl', await obstacle())
    skip(acl.skip, acl.missing)
    const directory = await freshDirectory()
    const inner = join(directory, 'project', 'node')
    await mkdir(inner, { recursive: true, mode: 0o700 })
    await allowPassage(inner, guest)
    for (const place of [directory, join(directory, 'project'), inner]) {
      expect((await stat(place)).mode & 0o7007).toBe(0)
      expect(permissionsOf(readAcl(place) ?? [], guest.uid)).toBe(1)
      expect(permissionsOf(readAcl(place) ?? [], other)).toBe(0)
    }
    await allowPassage(inner, guest)
    await allowPassage(inner, { uid: 0, gid: 0 })
  })

  test('is not opened when it is a home directory, or belongs to another user', async () => {
    const directory = await freshDirectory()
    vi.stubEnv('HOME', directory)
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(homedir()).toBe(directory)
    const inner = join(directory, "it's")
    await mkdir(inner, { mode: 0o700 })
    await expect(allowPassage(inner, guest)).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining(`sudo setfacl -m u:64055:x '${directory}'`),
    })
    expect(readAcl(inner)).toBeUndefined()
  })
})
