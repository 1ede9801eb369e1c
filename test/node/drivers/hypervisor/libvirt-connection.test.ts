import { expect, onTestFinished, test } from 'vitest'
import { LibvirtConnection } from '../../../../runtime/node/drivers/hypervisor/libvirt/connection.ts'
import { writeDomain } from '../../../../runtime/node/drivers/hypervisor/libvirt/domain.ts'
import { keepaliveProgram, procedures } from '../../../../runtime/node/drivers/hypervisor/libvirt/protocol.ts'
import { XdrReader, XdrWriter } from '../../../../runtime/node/drivers/hypervisor/libvirt/xdr.ts'
import { FakeLibvirt, refusal } from './fake-libvirt.ts'

const uri = 'qemu:///system'
const uuid = '6e2b5c1a-1111-4222-8333-444455556666'
const { domainGetState, domainLookupByName } = procedures

async function connect({ path }: FakeLibvirt, heard: (uuid: string) => void = () => {}): Promise<LibvirtConnection> {
  const connection = await LibvirtConnection.open({ socket: path, uri, ms: 5000 }, heard)
  onTestFinished(() => connection.close())
  return connection
}

test('a client authenticates, opens a connection and gets the events of VMs', async () => {
  const libvirt = await FakeLibvirt.start()
  const heard: string[] = []
  await connect(libvirt, (it) => heard.push(it))
  const { authList, connectOpen, connectDomainEventCallbackRegisterAny, domainEventCallbackLifecycle } = procedures
  expect(libvirt.calls.map(({ procedure }) => procedure)).toEqual([
    authList,
    connectOpen,
    connectDomainEventCallbackRegisterAny,
  ])
  expect(new XdrReader(libvirt.calls[1]?.payload ?? Buffer.alloc(0)).maybe((it) => it.string())).toBe(uri)
  const event = writeDomain(new XdrWriter().int(1), { name: 'one', uuid }).int(5).int(0)
  libvirt.tell(domainEventCallbackLifecycle, event)
  await expect.poll(() => heard).toEqual([uuid])
})

test('answers belong to their calls, in any order and in pieces of any size', async () => {
  const libvirt = await FakeLibvirt.start()
  const connection = await connect(libvirt)
  const answers = [1, 2, 3].map((number) => connection.call(domainGetState, new XdrWriter().int(number), 5000))
  await expect.poll(() => libvirt.calls.length).toBe(6)
  for (const call of libvirt.calls.slice(3).reverse()) {
    libvirt.reply(call, new XdrWriter().int(new XdrReader(call.payload).int() * 10))
  }
  expect((await Promise.all(answers)).map((it) => it.int())).toEqual([10, 20, 30])
})

test('a refusal is reported with the words of libvirt and its number', async () => {
  const refusing = (words: string) =>
    FakeLibvirt.start({
      [domainLookupByName]: (message, it) => void it.reply(message, refusal(42, words), true),
    })
  const connection = await connect(await refusing("Domain not found: no domain with matching name 'x'\n"))
  await expect(connection.call(domainLookupByName, new XdrWriter().string('x'), 5000)).rejects.toMatchObject({
    status: 409,
    reason: 'refused',
    number: 42,
    message: "libvirt: Domain not found: no domain with matching name 'x'",
  })
  expect(connection.isOpen).toBe(true)
})

test('keepalives of the daemon are answered', async () => {
  const libvirt = await FakeLibvirt.start()
  await connect(libvirt)
  libvirt.tell(1, new XdrWriter(), keepaliveProgram)
  await expect.poll(() => libvirt.calls.at(-1)).toMatchObject({ program: keepaliveProgram, procedure: 2, type: 2 })
})

test('a silent daemon is reported after the timeout, and its late answer belongs to no other call', async () => {
  const libvirt = await FakeLibvirt.start()
  const connection = await connect(libvirt)
  await expect(connection.call(domainGetState, undefined, 50)).rejects.toMatchObject({ reason: 'timeout', status: 409 })
  const late = libvirt.calls.at(-1)
  const next = connection.call(domainLookupByName, undefined, 5000)
  await expect.poll(() => libvirt.calls.at(-1)?.procedure).toBe(domainLookupByName)
  if (late !== undefined) libvirt.reply(late, new XdrWriter().int(1))
  const call = libvirt.calls.at(-1)
  if (call !== undefined) libvirt.reply(call, new XdrWriter().int(2))
  expect((await next).int()).toBe(2)
})

test('the number of calls that wait for a hanging daemon is limited', async () => {
  const connection = await connect(await FakeLibvirt.start())
  const calls = Array.from({ length: 257 }, () => connection.call(domainGetState, undefined, 200))
  const settled = await Promise.allSettled(calls)
  expect(settled.every(({ status }) => status === 'rejected')).toBe(true)
  await expect(calls[256]).rejects.toThrow('has not answered 256 calls')
})

test('the end of a connection rejects pending calls', async () => {
  const libvirt = await FakeLibvirt.start()
  const connection = await connect(libvirt)
  const call = connection.call(domainGetState, undefined, 5000)
  await expect.poll(() => libvirt.calls.length).toBe(4)
  libvirt.drop()
  await expect(call).rejects.toMatchObject({ reason: 'closed', status: 409 })
  await connection.closed
  await expect(connection.call(domainGetState, undefined, 5000)).rejects.toMatchObject({ reason: 'closed' })
})

test.for([
  ['another protocol', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
  ['a message shorter than its head', Buffer.from('00000008000000000000000000000000', 'hex')],
  ['a message without end', Buffer.from('7fffffff', 'hex')],
] as const)('%s is refused', async ([, bytes]) => {
  const libvirt = await FakeLibvirt.start()
  const connection = await connect(libvirt)
  const call = connection.call(domainGetState, undefined, 5000)
  libvirt.send(bytes as Buffer)
  await expect(call).rejects.toMatchObject({ reason: 'protocol', status: 409 })
})

const auth = (...types: number[]) => {
  const list = new XdrWriter().uint(types.length)
  for (const type of types) list.int(type)
  return { [procedures.authList]: () => list }
}

test('a daemon that requires a password is refused, with a hint', async () => {
  const libvirt = await FakeLibvirt.start(auth(1))
  await expect(connect(libvirt)).rejects.toMatchObject({
    reason: 'unreachable',
    message: expect.stringMatching(/SASL/),
  })
})

test('polkit is asked, and its refusal is reported with a hint', async () => {
  const yes = { ...auth(2), [procedures.authPolkit]: () => new XdrWriter().int(1) }
  expect((await connect(await FakeLibvirt.start(yes))).isOpen).toBe(true)
  const no = await FakeLibvirt.start({
    ...auth(2),
    [procedures.authPolkit]: (message, it) => void it.reply(message, refusal(45, 'authentication failed'), true),
  })
  await expect(connect(no)).rejects.toThrow('usermod -aG libvirt')
})

test('a value that cannot be encoded is refused before anything is sent', async () => {
  const connection = await connect(await FakeLibvirt.start())
  const long = new XdrWriter().string('x'.repeat(17 << 20))
  await expect(connection.call(domainGetState, long, 100)).rejects.toMatchObject({ reason: 'protocol' })
  expect(connection.isOpen).toBe(true)
})
