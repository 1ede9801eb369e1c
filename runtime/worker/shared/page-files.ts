import page from '../../../dist/page-files.js'

/** A file of the page for browsers, as text; undefined: there is no such file. */
export const pageFile = (name: string): string | undefined => (Object.hasOwn(page, name) ? page[name] : undefined)
