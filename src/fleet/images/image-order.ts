import { sha256, toHex } from '../../lib/crypto/secret.ts'
import { compareText } from '../../lib/text/compare-text.ts'
import type { ImageKindName } from '../../model/image.ts'
import type { Member } from '../members/members.ts'

/**
 * Computes in an order that depends on the image, and is the same for each request: those that take labs first. Where images are kept
 * apart from the computes, the first one gets what is uploaded, and is asked first.
 */
export async function inOrderOf(kind: ImageKindName, name: string, members: readonly Member[]): Promise<Member[]> {
  const ranked = await Promise.all(
    members.map(async (member) => {
      const digest = toHex(await sha256(`${kind} ${name} ${member.id}`))
      return { member, rank: `${member.acceptsProjects ? 'a' : 'b'} ${digest}` }
    }),
  )
  return ranked.sort((a, b) => compareText(a.rank, b.rank)).map(({ member }) => member)
}
