import { wellFormed } from '../text/escape.ts'

/**
 * `Content-Disposition` of a download under a name (RFC 6266). `filename*` has the name in UTF-8 (RFC 8187); `filename` is for clients that do
 * not read it, in ASCII. Characters that no file name may have become `_`.
 */
export function attachment(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
  const safe = wellFormed(name).replaceAll(/[\u0000-\u001f\u007f-\u009f/\\:*?"<>|]/g, '_')
  const plain = safe.replaceAll(/[^\w .()-]/g, '_')
  // `attr-char` has fewer characters than those that encodeURIComponent leaves.
  const encoded = encodeURIComponent(safe).replaceAll(
    /['()*]/g,
    (it) => `%${it.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}
