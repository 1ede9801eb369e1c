import { expect, onTestFinished, test, vi } from 'vitest'

test('without libpcap an expression is a conflict that says what to install', async () => {
  // The one thing that cannot be had here for real: a host without libpcap.
  vi.resetModules()
  vi.doMock('../../../../runtime/node/dataplane/bpf/libpcap.ts', () => ({ loadLibpcap: () => undefined }))
  onTestFinished(() => {
    vi.doUnmock('../../../../runtime/node/dataplane/bpf/libpcap.ts')
    vi.resetModules()
  })
  const { bpfAvailable, compileBpf } = await import('../../../../runtime/node/dataplane/bpf/compile.ts')
  expect(bpfAvailable()).toBe(false)
  expect(() => compileBpf('tcp', 1)).toThrow(
    expect.objectContaining({ status: 409, message: expect.stringContaining('apt install libpcap0.8') }),
  )
})
