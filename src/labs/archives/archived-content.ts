import { unsafePcLines } from '../../model/kinds/host-access.ts'
import type { Untrusted } from '../plan/trust.ts'

/** The part of a file that is judged, bytes. */
const headBytes = 64 << 10

/** Reads the beginning of a stream; `content` has all of it. */
async function withHead(
  stream: ReadableStream<Uint8Array>,
): Promise<{ head: Uint8Array; content: ReadableStream<Uint8Array> }> {
  const reader = stream.getReader()
  const chunks: Uint8Array[] = []
  let length = 0
  let isOver = false
  while (length < headBytes && !isOver) {
    const { value, done } = await reader.read()
    isOver = done
    if (value === undefined) continue
    // A copy: the reader of an archive uses its buffers again.
    chunks.push(value.slice())
    length += value.byteLength
  }
  const head = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    head.set(chunk, at)
    at += chunk.byteLength
  }
  const content = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = chunks.shift()
      if (next !== undefined) return controller.enqueue(next)
      const { value, done } = await reader.read()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: (reason) => reader.cancel(reason),
  })
  return { head: head.subarray(0, headBytes), content }
}

/** Reads the beginning of a file of an archive, and calls `judge` with what the host would run or open because of it. */
export async function judgedContent(
  path: string,
  stream: ReadableStream<Uint8Array>,
  judge: (found: readonly Untrusted[]) => void,
): Promise<ReadableStream<Uint8Array>> {
  const { head, content } = await withHead(stream)
  try {
    judge(untrustedContent(path, head))
  } catch (error) {
    await content.cancel()
    throw error
  }
  return content
}

/** What the host would run or open because of a file of an archive, by its path and its first bytes. */
function untrustedContent(path: string, head: Uint8Array): Untrusted[] {
  const text = latin1(head)
  if (isProgram(path, text)) return [{ name: path, setting: 'program', value: 'a program (ELF)' }]
  if (/^project-files\/pc\/.*\.vpc$/.test(path)) {
    if (head.byteLength >= headBytes)
      return [{ name: path, setting: 'startup_script', value: 'a script of 64 KiB or more' }]
    return unsafePcLines(new TextDecoder().decode(head), 'startup_script').map((it) => ({ name: path, ...it }))
  }
  const { backing, others } = filesBehind(text, head)
  // The service writes the name of its image into an overlay at each start.
  const files = [...(backing === undefined || isOverlay.test(path) ? [] : [backing]), ...others]
  return files
    .filter((file) => file === unnamed || /[/:\\]/.test(file))
    .map((file) => ({ name: path, setting: 'disk', value: file }))
}

/** An IOU image, or a file of the project, which is where an IOU node finds its image, too. An image of IOS is an ELF file of another processor. */
const isProgram = (path: string, text: string): boolean =>
  text.startsWith('\u007fELF') && !/^images\/(?!IOU\/)/i.test(path)

/** The overlays of a machine. */
const isOverlay = /^project-files\/machine-emulator\/[^/]+\/hd[a-d]_disk(\.[^/]*)?\.qcow2$/

/** Stands for a file whose name is not at the beginning of the image. */
const unnamed = 'another file'

interface FilesBehind {
  readonly backing?: string | undefined
  readonly others: readonly string[]
}

/**
 * The files that a disk image refers to. qcow2: docs/interop/qcow2.txt of QEMU; qed: docs/interop/qed_spec.txt; VMDK: the text of its
 * descriptor.
 */
function filesBehind(text: string, head: Uint8Array): FilesBehind {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength)
  if (text.startsWith('QFI\u00fb') && head.byteLength >= 20) {
    const offset = Number(view.getBigUint64(8))
    const end = offset + view.getUint32(16)
    const backing = offset === 0 ? undefined : end <= head.byteLength ? text.slice(offset, end) : unnamed
    return { backing, others: hasDataFile(view) ? [unnamed] : [] }
  }
  // Bit 0 of the features: it has a backing file.
  if (text.startsWith('QED\0') && head.byteLength >= 24)
    return { backing: (view.getUint8(16) & 1) === 0 ? undefined : unnamed, others: [] }
  if (text.startsWith('# Disk DescriptorFile')) return { others: filesOfVmdk(text) }
  if (text.startsWith('KDMV') && head.byteLength >= 44) {
    const from = Number(view.getBigUint64(28, true)) * sector
    const length = Number(view.getBigUint64(36, true)) * sector
    if (from === 0) return { others: [] }
    // QEMU reads at most 20 sectors of a descriptor.
    return {
      others: from + Math.min(length, 20 * sector) > head.byteLength ? [unnamed] : filesOfVmdk(text.slice(from)),
    }
  }
  return { others: [] }
}

/** Bytes. */
const sector = 512

/** Bit 2 of the incompatible features of version 3: the data is in another file. */
const hasDataFile = (view: DataView): boolean =>
  view.byteLength >= 80 && view.getUint32(4) >= 3 && (view.getUint8(79) & 4) !== 0

const filesOfVmdk = (text: string): string[] =>
  [...text.matchAll(/^\s*(?:(?:RW|RDONLY|NOACCESS)\s.*?|parentFileNameHint\s*=\s*)"([^"\n]*)"/gim)].map(
    ([, file = '']) => file,
  )

const latin1 = (bytes: Uint8Array): string => {
  let text = ''
  for (let at = 0; at < bytes.byteLength; at += 4096)
    text += String.fromCharCode(...bytes.subarray(at, Math.min(at + 4096, bytes.byteLength)))
  return text
}
