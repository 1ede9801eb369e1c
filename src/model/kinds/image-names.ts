/** Longest file name that is made of the name of an image. */
const maxStem = 200

/** Whether a name is that of an archive, and not that of an image in a registry. */
const isArchiveName = (name: string): boolean => /\.(tar(\.[a-z0-9]+)?|tgz)$/i.test(name)

/**
 * The file in the images directory that has an image of a registry: `frrouting/frr:v8.4.0` -> `frrouting_frr_v8.4.0.tar`, `alpine` ->
 * `alpine_latest.tar`. The registry that is meant without a name (docker.io) is left out. The name of an archive stays; clients of
 * Docker add a tag to it.
 */
export function containerImageFile(reference: string): string {
  const archive = reference.trim().replace(/:latest$/, '')
  if (isArchiveName(archive)) return archive
  const short = reference
    .trim()
    .replace(/^docker\.io\//, '')
    .replace(/^library\//, '')
  const last = short.slice(short.lastIndexOf('/') + 1)
  const tagged = /[:@]/.test(last) ? short : `${short}:latest`
  // Hidden files are no images.
  return `${tagged
    .replaceAll(/[^A-Za-z0-9._-]/g, '_')
    .replace(/^\./, '_')
    .slice(0, maxStem)}.tar`
}

/**
 * What a registry may call the image that has such a file, so that `containerImageFile` leads back to the file: of several names that have
 * the same file, one with directories. Other files keep their names.
 */
export function containerImageName(file: string): string {
  const [stem, tag] = /^(.+)_([^_]+)\.tar$/.exec(file)?.slice(1) ?? []
  const name = `${stem?.replaceAll('_', '/')}:${tag}`
  return stem !== undefined && isImageReference(name) && containerImageFile(name) === file ? name : file
}

/** Whether a registry may call an image so, as skopeo takes it after `docker://`. */
export const isImageReference = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,500}$/.test(name)

/** The commands that bring an image; undefined for a name that no registry has, and that a shell might run. */
export function imageCommands(reference: string): string | undefined {
  const name = reference.trim()
  if (!isImageReference(name) || isArchiveName(name)) return undefined
  const file = containerImageFile(name)
  return `"patchbay images pull ${name}" fetches it, or "docker save -o ${file} ${name}" makes a file to upload`
}

/** The name of the image that a text of `imageCommands` brings. */
export const imageInCommands = (text: string): string | undefined => /^"patchbay images pull (\S+)" /.exec(text)?.[1]

/** What the programs of an image need, by its name. */
interface ImageNeeds {
  readonly symbol: string
  readonly capabilities: readonly string[]
  /** Further consoles, of images whose command has another terminal. */
  readonly consoles: readonly { readonly name: string; readonly exec: string }[]
}

/** What the programs of an image need; zebra of FRR asks for a capability, and vtysh is where it is configured. */
export function imageNeeds(image: string): ImageNeeds {
  return /frr/i.test(image)
    ? { symbol: 'router', capabilities: ['SYS_ADMIN'], consoles: [{ name: 'vtysh', exec: 'vtysh' }] }
    : { symbol: '', capabilities: [], consoles: [] }
}
