import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { Hypervisor } from '../../../../runtime/node/drivers/dynamips/hypervisor.ts'
import { commandText, parseReply } from '../../../../runtime/node/drivers/dynamips/replies.ts'
import { fakeHypervisor } from './fake-hypervisor.ts'
import { recorded } from './recorded.ts'

const ms = 2000
const replay = (command: string) => recorded[command] ?? ['206-not recorded']

test('an answer is its lines, and the text that ended it', async () => {
  const { client } = await fakeHypervisor(replay)
  expect(await client.run('hypervisor version', [], { ms })).toEqual({ lines: [], text: '0.2.14-amd64' })
  expect(await client.run('vm start', ['router'], { ms })).toEqual({
    lines: ["Warning: no console port defined for VM 'router'"],
    text: "VM 'router' started",
  })
  const { lines } = await client.run('vm get_idle_pc_prop', ['router', 0], { ms })
  expect(lines).toHaveLength(10)
  expect(lines[0]).toBe('0x6000805c [37]')
})

test('a refusal has the command, the reason, and the code of dynamips', async () => {
  const { client } = await fakeHypervisor(replay)
  await expect(client.run('vm start', ['nobody'], { ms })).rejects.toMatchObject({
    code: 'refused',
    reply: 208,
    message: "vm start: unable to find object 'nobody'",
  })
  await expect(client.run('bar foo', [], { ms })).rejects.toMatchObject({ reply: 201 })
  expect(client.isOpen).toBe(true)
})

test('an answer that comes in pieces is put together', async () => {
  const { client, socket } = await fakeHypervisor(() => undefined)
  const answer = client.run('vm cpu_usage', ['router', 0], { ms })
  for (const piece of ['10', '1 1', '0\r', '\n100', '-O', 'K\r\n']) {
    socket.write(piece)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  expect(await answer).toEqual({ lines: ['10'], text: 'OK' })
})

test('a command is sent after the answer to the one before', async () => {
  const { client, commands, socket } = await fakeHypervisor(() => undefined)
  const answers = ['one', 'two', 'three'].map((name) => client.run('vm start', [name], { ms }))
  for (const [index, name] of ['one', 'two', 'three'].entries()) {
    await expect.poll(() => commands).toHaveLength(index + 1)
    socket.write(`100-${name}\r\n`)
    expect(await answers[index]).toMatchObject({ text: name })
  }
  expect(commands).toEqual(['vm start "one"', 'vm start "two"', 'vm start "three"'])
})

test.each([
  ['a quote', 'a"b'],
  ['a new line', 'a\nhypervisor stop'],
  ['a carriage return', 'a\rb'],
  ['a NUL', 'a\0b'],
  ['nothing', ''],
  ['no whole number', 1.5],
])('a value with %s is not sent', async (_, value) => {
  const { client, commands } = await fakeHypervisor(() => ['100-OK'])
  await expect(client.run('vm start', [value], { ms })).rejects.toMatchObject({ code: 'protocol' })
  expect(commands).toEqual([])
  expect(client.isOpen).toBe(true)
})

test('values are quoted, numbers are not', () => {
  expect(commandText('vm set_ios', ['my router', "/images/a'b #1!.bin"])).toBe(
    'vm set_ios "my router" "/images/a\'b #1!.bin"',
  )
  expect(commandText('vm set_ram', ['r', 512])).toBe('vm set_ram "r" 512')
  expect(commandText('hypervisor version', [])).toBe('hypervisor version')
})

test.each(Object.entries(recorded))('the answer of dynamips to %j follows the protocol', (_, lines) => {
  const types = lines.map((line) => parseReply(line).type)
  expect(types.slice(0, -1)).toEqual(types.slice(1).map(() => 'data'))
  expect(types.at(-1)).toMatch(/^(done|refused)$/)
})

test.each(['', 'OK', '300-what', '10-OK', '1000-OK', 'x100-OK'])('%j does not follow the protocol', (line) => {
  expect(() => parseReply(line)).toThrow(expect.objectContaining({ code: 'protocol' }))
})

test('after a timeout of dynamips the connection is closed, and all pending commands fail', async () => {
  const { client } = await fakeHypervisor(() => undefined)
  const first = client.run('vm start', ['router'], { ms: 50 })
  const second = client.run('vm stop', ['router'], { ms }).catch((error: unknown) => error)
  await expect(first).rejects.toMatchObject({
    code: 'timeout',
    message: 'vm start: no answer from dynamips within 50 ms',
  })
  expect(await second).toMatchObject({ code: 'timeout' })
  await client.closed
  await expect(client.run('vm start', ['router'], { ms })).rejects.toMatchObject({ code: 'timeout' })
})

test('closing rejects pending commands', async () => {
  const { client } = await fakeHypervisor(() => undefined)
  const pending = client.run('vm start', ['router'], { ms })
  client.close()
  client.close()
  await expect(pending).rejects.toMatchObject({ code: 'closed' })
})

test('the end of dynamips rejects pending and later commands', async () => {
  const { client, socket } = await fakeHypervisor(() => undefined)
  const pending = client.run('vm start', ['router'], { ms })
  socket.destroy()
  await expect(pending).rejects.toMatchObject({ code: 'closed' })
  await expect(client.run('vm start', ['router'], { ms })).rejects.toMatchObject({ code: 'closed' })
})

test('a cancelled command gets no answer, and the next one gets its own', async () => {
  const { client, commands, socket } = await fakeHypervisor(() => undefined)
  const gone = new AbortController()
  const first = client.run('vm get_idle_pc_prop', ['router', 0], { ms, signal: gone.signal })
  const never = client.run('vm start', ['router'], { ms, signal: gone.signal })
  const last = client.run('vm stop', ['router'], { ms })
  gone.abort()
  await expect(first).rejects.toMatchObject({ code: 'aborted' })
  await expect(never).rejects.toMatchObject({ code: 'aborted' })
  await expect.poll(() => commands).toHaveLength(1)
  socket.write('101 0x60008000 [40]\r\n100-OK\r\n')
  await expect.poll(() => commands).toEqual(['vm get_idle_pc_prop "router" 0', 'vm stop "router"'])
  socket.write('100-stopped\r\n')
  expect(await last).toEqual({ lines: [], text: 'stopped' })
  await expect(client.run('vm start', ['r'], { ms, signal: gone.signal })).rejects.toMatchObject({ code: 'aborted' })
})

test.each([
  ['of too many lines', Array.from({ length: 5000 }, () => '101 x')],
  ['with a line that does not end', [`101 ${'x'.repeat(3 << 20)}`]],
  ['of another protocol', ['HTTP/1.1 400 Bad Request']],
])('an answer %s ends the connection', async (_, lines) => {
  const { client } = await fakeHypervisor(() => lines)
  await expect(client.run('vm start', ['router'], { ms })).rejects.toMatchObject({ code: 'protocol' })
  expect(client.isOpen).toBe(false)
})

test('an answer without a command ends the connection', async () => {
  const { client, socket } = await fakeHypervisor(() => undefined)
  socket.write('100-OK\r\n')
  await client.closed
  await expect(client.run('vm start', ['router'], { ms })).rejects.toMatchObject({ code: 'protocol' })
})

test('commands that pile up are refused', async () => {
  const { client } = await fakeHypervisor(() => undefined)
  const answers = Array.from({ length: 65 }, () => client.run('vm start', ['r'], { ms }).catch((error) => error.code))
  expect(await answers[64]).toBe('timeout')
  client.close()
  expect(await answers[0]).toBe('closed')
})

test('a port without a listener is reported at once', async () => {
  const server = createServer().listen({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  await expect(Hypervisor.connect({ port, ms })).rejects.toMatchObject({ code: 'unreachable' })
})
