import { body, post, send } from './api.ts'

/** What an image of this kind begins with; nothing that is made of it can be started. */
const header = Buffer.alloc(64)
Buffer.from('7f454c46010101', 'hex').copy(header)

/** The name of an image that `uploadIouImage` has made. */
export const iouImage = 'handlers.bin'

export async function uploadIouImage(): Promise<void> {
  const { status } = await send(`/v2/compute/iou/images/${iouImage}`, { method: 'POST', body: header })
  if (status !== 204) throw new Error(`the image was not taken: ${status}`)
}

type RouterView = Record<string, unknown> & {
  readonly node_id: string
  readonly application_id: number
  readonly node_directory: string
}

/** A router in a project: as it was shown, and where it is in both API versions. */
export interface NewRouter {
  readonly view: RouterView
  readonly id: string
  readonly v1: string
  readonly v2: string
  /** Where clients read and write its files. */
  readonly files: string
}

export async function newRouter(
  project: { v1: string; v2: string },
  input: Record<string, unknown> = {},
): Promise<NewRouter> {
  const answer = await post(`${project.v2}/iou/nodes`, { name: 'R1', path: iouImage, ...input })
  if (answer.status !== 201) throw new Error(await answer.text())
  const view = await body<RouterView>(answer)
  const id = view.node_id
  return {
    view,
    id,
    v1: `${project.v1}/iou/vms/${id}`,
    v2: `${project.v2}/iou/nodes/${id}`,
    files: `${project.v2}/files/project-files/iou/${id}`,
  }
}

/** A file of a project, as text; null when there is none. */
export async function fileText(path: string): Promise<string | null> {
  const answer = await send(path)
  if (answer.status === 404) return null
  if (!answer.ok) throw new Error(await answer.text())
  return answer.text()
}
