/**
 * The text of header bytes, of which each is a character here: UTF-8, else Latin-1. RFC 9110 (5.5) leaves the encoding open, and clients send
 * either. A text that is decoded already stays, so both sides of a comparison may be given to it.
 */
export function textOfBytes(bytes: string): string {
  if (!/[\u0080-\u00ff]/.test(bytes) || /[\u0100-\uffff]/.test(bytes)) return bytes
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    // A proxy may have encoded UTF-8 once more.
    return textOfBytes(decoder.decode(Uint8Array.from(bytes, (it) => it.charCodeAt(0))))
  } catch {
    return bytes
  }
}

/** A text as the value of a header, of which each character is a byte: Latin-1, and UTF-8 where Latin-1 lacks a character. */
export const bytesOfText = (text: string): string =>
  /[\u0100-\uffff]/.test(text) ? String.fromCharCode(...new TextEncoder().encode(text)) : text
