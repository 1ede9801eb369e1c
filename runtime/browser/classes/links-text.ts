import type { ClassLink } from '../../../src/client/patchbay.ts'

/** The whole address of a link. */
export const addressOf = ({ path }: Pick<ClassLink, 'path'>, origin: string = location.origin): string => origin + path

/** Whether a host name leads every computer to itself. */
export const isAtThisComputer = (host: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(host)

/** The links as a table for other programs (RFC 4180), with a mark by which spreadsheets read it as UTF-8. */
export function linksCsv(links: readonly Pick<ClassLink, 'student' | 'project' | 'path'>[], origin?: string): string {
  const rows = links.map((link) => [link.student, link.project, addressOf(link, origin)])
  return `\ufeff${[['Student', 'Lab', 'Link'], ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('')}`
}

/** Always in quotation marks: what separates cells differs from one spreadsheet to another. */
const cell = (text: string): string => `"${plain(text).replaceAll('"', '""')}"`

/** A spreadsheet would take a text that begins like a formula for one, some also by a sign of full width. */
const plain = (text: string): string => (/^\s*[=+\-@＝＋－＠]|^[\t\r\n]/.test(text) ? `'${text}` : text)

/** The links as lines to paste into a message or a table. */
export const linksText = (links: readonly Pick<ClassLink, 'student' | 'path'>[], origin?: string): string =>
  links.map((link) => `${plain(link.student)}\t${addressOf(link, origin)}`).join('\n')
