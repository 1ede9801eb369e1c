/** Characters that file systems do not take in a name. */
const refused = /[\p{Cc}/\\:*?"<>|]/gu

/** Saves a file by the browser. */
export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = url
  link.download = name.replace(refused, '-')
  link.click()
  URL.revokeObjectURL(url)
}
