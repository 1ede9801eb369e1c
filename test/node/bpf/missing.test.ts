import { expect, test, vi } from 'vitest'
import { bpfAvailable, compileBpf } from '../../../runtime/node/bpf/compile.ts'

// The one thing that cannot be had here for real: a host without libpcap.
vi.mock('../../../runtime/node/bpf/libpcap.ts', () => ({ loadLibpcap: () => undefined }))

test('without libpcap an expression is a conflict that says what to install', () => {
  expect(bpfAvailable()).toBe(false)
  expect(() => compileBpf('tcp', 1)).toThrow(
    expect.objectContaining({ status: 409, message: expect.stringContaining('apt install libpcap0.8') }),
  )
})
