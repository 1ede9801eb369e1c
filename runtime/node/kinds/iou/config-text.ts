/** Routers do not care for characters; bytes that are not UTF-8 are taken one by one, as Latin-1, so that none is lost. */
export function configText(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return bytes.toString('latin1')
  }
}
