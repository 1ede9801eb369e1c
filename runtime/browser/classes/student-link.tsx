import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { PatchbayError, type Session } from '../../../src/client/patchbay.ts'
import { forgetUnsavedTexts } from '../editing/config-draft.ts'
import { Dialog } from '../parts/dialog.tsx'
import { client, logIn } from '../state/client.ts'
import { messageOf } from '../state/notices.ts'
import { keepStudent } from '../state/own-student.ts'
import { forgetLink, isLinkFollowed, labPath, leaveLink, linkToken } from '../state/route.ts'
import { isOpen, session } from '../state/session.ts'

/** What is asked before a link is opened; nothing, where nobody else is signed in and all is saved. */
interface Question {
  /** As whom the service knows the page so far. */
  readonly now: Session | undefined
  /** Who is signed in, and would be signed out. */
  readonly user: string | undefined
  readonly isUnsaved: boolean
}

/** Shown for the link of a student: signs in by its token, and goes on to the lab of it. Asks first, if somebody else is signed in. */
export function StudentLink({ token }: { token: string }) {
  const question = useSignal<Question | undefined>(undefined)
  const failure = useSignal<unknown>(undefined)
  /** Whether the page has another link meanwhile, or none. */
  const isOver = () => linkToken.peek() !== token
  const fail = (error: unknown) => {
    if (isOver()) return
    failure.value = error
    isLinkFollowed.value = true
  }
  const follow = ({ now, user }: Question) => {
    question.value = undefined
    isLinkFollowed.value = true
    labOf(token, now).then((path) => {
      if (user !== undefined) forgetUnsavedTexts()
      if (!isOver()) leaveLink(path)
    }, fail)
  }
  const enter = () => {
    failure.value = undefined
    question.value = undefined
    questionOf(token).then((asked) => {
      if (isOver()) return
      if (asked.user === undefined && !asked.isUnsaved) return follow(asked)
      session.value = asked.now
      question.value = asked
    }, fail)
  }
  useEffect(enter, [token])
  const { value: error } = failure
  const { value: asked } = question
  if (asked !== undefined) return <LinkQuestion {...asked} onOpen={() => follow(asked)} />
  if (!isLinkFollowed.value && session.value !== undefined) return null
  const isRefused = error instanceof PatchbayError && error.status === 401
  return (
    <main class="ended">
      <h1>Patchbay</h1>
      {error === undefined ? (
        <p role="status">Opening the lab …</p>
      ) : (
        <p role="alert" dir="auto">
          {isRefused ? 'This link is no longer valid. Ask your teacher for a new one.' : messageOf(error)}
        </p>
      )}
      {error !== undefined && !isRefused && (
        <button type="button" class="is-main" autofocus onClick={enter}>
          Try again
        </button>
      )}
      {error !== undefined && session.value != null && (
        <button type="button" onClick={forgetLink}>
          Back
        </button>
      )}
    </main>
  )
}

function LinkQuestion({ user, isUnsaved, onOpen }: Omit<Question, 'now'> & { readonly onOpen: () => void }) {
  return (
    <Dialog title="Open this link?" isFirm onClose={forgetLink}>
      {user !== undefined && (
        <p>
          You are signed in as <bdi>{user}</bdi>. Open this link and sign out?
        </p>
      )}
      {isUnsaved && <p>You have changes that are not saved. They may be lost.</p>}
      <div class="row form-actions">
        <button type="button" class="is-main" onClick={onOpen}>
          Open the link
        </button>
        <button type="button" autofocus onClick={forgetLink}>
          Stay
        </button>
      </div>
    </Dialog>
  )
}

/** Under which the browser keeps the id of the token of the link by which it was signed in last. */
const ownLink = 'patchbay.link'
const idOf = (token: string): string => token.split('_')[1] ?? ''

/** What to ask first. Who opens the own link again is not asked. */
async function questionOf(token: string): Promise<Question> {
  const now = await client.call('GET /v2/session').catch((error: unknown) => {
    if (error instanceof PatchbayError && error.status === 401) return undefined
    throw error
  })
  if (now === undefined) return { now, user: undefined, isUnsaved: false }
  const isOwn = now.projects?.length === 1 && localStorage.getItem(ownLink) === idOf(token)
  const user = isOwn || isOpen(now) ? undefined : now.name
  // As the browser would, when it left the page.
  const isUnsaved = !dispatchEvent(new Event('beforeunload', { cancelable: true }))
  return { now, user, isUnsaved }
}

/** Signs in; the address of the lab of the token, or of the list of labs where it has several. */
async function labOf(token: string, now: Session | undefined): Promise<string> {
  if (isOpen(now)) {
    session.value = now
    // It takes no log-ins, and tells everybody whose token that is.
    const classes = await client.call('GET /v2/classes')
    const own = classes.flatMap((it) => it.students).find((it) => it.token?.token_id === idOf(token))
    if (own === undefined) return '#/'
    keepStudent(own)
    return labPath(own.project)
  }
  await logIn({ token })
  localStorage.setItem(ownLink, idOf(token))
  const [lab, ...others] = await client.call('GET /v2/projects')
  return lab === undefined || others.length > 0 ? '#/' : labPath(lab.name)
}
