import { type ReadonlySignal, useSignal } from '@preact/signals'
import type { CallName, Image } from '../../../src/client/patchbay.ts'
import { client } from '../state/client.ts'
import { notifyError } from '../state/notices.ts'

type KindOf<T> = T extends `GET /v2/compute/${infer K}/images` ? K : never

/** The images of a kind that the service has. */
export const imagesOf = (kind: string): Promise<readonly Image[]> =>
  client.call(`GET /v2/compute/${kind as KindOf<CallName>}/images`)

/** The images of a kind, once `read` was called; undefined: its nodes start from none. */
export function useImages(kind: string | undefined): {
  images: ReadonlySignal<readonly Image[]>
  read: () => void
  readAgain: () => void
} {
  const images = useSignal<readonly Image[]>([])
  const asked = useSignal('')
  const readAgain = () => {
    if (kind === undefined) return
    asked.value = kind
    imagesOf(kind).then((all) => {
      images.value = all
    }, notifyError)
  }
  return {
    images,
    read() {
      if (asked.peek() !== kind) readAgain()
    },
    readAgain,
  }
}
