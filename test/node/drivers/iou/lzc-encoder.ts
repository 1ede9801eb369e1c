/** `compress`, written apart from the code under test: codes are gathered by width, and each run is packed by itself. */
export function compressLzc(data: Uint8Array, { bits = 16, isBlockMode = true, clearEvery = Infinity } = {}): Buffer {
  const runs: { width: number; codes: number[] }[] = []
  const codeOf = new Map<string, number>()
  const firstFree = isBlockMode ? 257 : 256
  let free = firstFree
  let width = 9
  const emit = (code: number) => {
    if (runs.at(-1)?.width !== width || runs.length === 0) runs.push({ width, codes: [] })
    runs.at(-1)?.codes.push(code)
  }
  let word = ''
  const codeOfWord = () => (word.length === 1 ? word.charCodeAt(0) : (codeOf.get(word) as number))
  let sinceClear = 0
  for (const byte of data) {
    const char = String.fromCharCode(byte)
    if (word === '' || codeOf.has(word + char)) {
      word += char
      continue
    }
    emit(codeOfWord())
    if (free < 1 << bits) codeOf.set(word + char, free++)
    // The reader is one entry behind the writer.
    if (free - 1 >= 1 << width && width < bits) width++
    word = char
    if (isBlockMode && ++sinceClear >= clearEvery) {
      emit(codeOfWord())
      if (free < 1 << bits && free >= 1 << width && width < bits) width++
      emit(256)
      codeOf.clear()
      ;[free, width, sinceClear, word] = [firstFree, 9, 0, '']
      runs.push({ width, codes: [] })
    }
  }
  if (word !== '') emit(codeOfWord())
  const header = Buffer.from([0x1f, 0x9d, bits | (isBlockMode ? 0x80 : 0)])
  return Buffer.concat([header, ...runs.map((run, n) => packed(run, n === runs.length - 1))])
}

/** Lowest bit first; all runs but the last are filled up to eight codes. */
function packed({ width, codes }: { width: number; codes: readonly number[] }, isLast: boolean): Buffer {
  const bits = codes.flatMap((code) => Array.from({ length: width }, (_, n) => (code >> n) & 1))
  while (!isLast && bits.length % (width * 8) !== 0) bits.push(0)
  const bytes = Buffer.alloc(Math.ceil(bits.length / 8))
  for (const [n, bit] of bits.entries()) bytes[n >> 3] = (bytes[n >> 3] ?? 0) | (bit << (n & 7))
  return bytes
}
