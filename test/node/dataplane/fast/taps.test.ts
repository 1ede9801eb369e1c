import { expect, onTestFinished, test } from 'vitest'
import { Taps } from '../../../../runtime/node/dataplane/fast/taps.ts'
import { type Libc, linux, loadLibc } from '../../../../runtime/node/os/system/libc.ts'
import { freshName } from '../../../support/namespace.ts'
import { requireDevices } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'

const allOffloads = 0x6f
const tcpOffloads = 0x0f

/** Opens a TAP where the kernel refuses some requests; the offloads that were asked for. */
function openWhere(refuses: (request: number, value: number) => boolean) {
  const libc = loadLibc()
  let errno: number | undefined
  const asked: number[] = []
  const limited: Libc = {
    ...libc,
    ioctl(fd, request, argument) {
      if (request === linux.TUNSETOFFLOAD) asked.push(argument)
      errno = refuses(request, argument) ? linux.EINVAL : undefined
      return errno === undefined ? libc.ioctl(fd, request, argument) : -1
    },
    errno: () => errno ?? libc.errno(),
  }
  const taps = new Taps(limited, true)
  const opened = taps.open(freshName())
  onTestFinished(() => taps.close(opened.fd))
  return { opened, asked }
}

describeWith(requireDevices())('a TAP', () => {
  test('has headers, and everything that the kernel can leave to a device is left to it', () => {
    const { opened, asked } = openWhere(() => false)
    expect(opened.hasHeader).toBe(true)
    expect(asked).toEqual([allOffloads])
  })

  test('is opened without headers where these are refused, and then nothing is left to it', () => {
    let tries = 0
    const { opened, asked } = openWhere((request) => request === linux.TUNSETIFF && tries++ === 0)
    expect(opened.hasHeader).toBe(false)
    expect(asked).toEqual([0])
  })

  test('has no datagrams left to it where the kernel knows only TCP', () => {
    const { opened, asked } = openWhere((request, value) => request === linux.TUNSETOFFLOAD && value === allOffloads)
    expect(opened.hasHeader).toBe(true)
    expect(asked).toEqual([allOffloads, tcpOffloads])
  })
})
