import { useSignal } from '@preact/signals'
import { PatchbayError } from '../../../src/client/patchbay.ts'
import { ErrorMessage } from '../parts/error-message.tsx'
import { RadioGroup } from '../parts/radio-group.tsx'
import { logIn, namedOrganization } from '../state/client.ts'
import { messageOf } from '../state/notices.ts'

const refusals = {
  token: 'This token is not valid here. It may have been revoked or have expired.',
  password: 'Wrong user or password.',
} as const

/** Asks for credentials, where the service needs them. */
export function SignIn() {
  const way = useSignal<'token' | 'password'>('token')
  const failure = useSignal('')
  const send = async (form: HTMLFormElement) => {
    const text = (name: string) => (form.elements.namedItem(name) as HTMLInputElement | null)?.value ?? ''
    failure.value = ''
    try {
      await logIn(
        way.value === 'token' ? { token: text('token').trim() } : { user: text('user'), password: text('password') },
      )
    } catch (error) {
      const isWrong = error instanceof PatchbayError && error.status === 401
      failure.value = isWrong ? refusals[way.value] : messageOf(error)
    }
  }
  return (
    <main class="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send(event.currentTarget)
        }}
      >
        <h1>Patchbay</h1>
        {namedOrganization !== undefined && <p>Organization {namedOrganization}</p>}
        <RadioGroup
          label="Sign in by"
          value={way.value}
          options={[
            ['token', 'Token'],
            ['password', 'User and password'],
          ]}
          onChange={(it) => {
            way.value = it
            failure.value = ''
          }}
        />
        {way.value === 'token' ? (
          <div class="field">
            <label for="token">Token</label>
            <input id="token" name="token" type="password" required autofocus autocomplete="off" />
          </div>
        ) : (
          <>
            <div class="field">
              <label for="user">User</label>
              <input id="user" name="user" required autocomplete="username" />
            </div>
            <div class="field">
              <label for="password">Password</label>
              <input id="password" name="password" type="password" required autocomplete="current-password" />
            </div>
          </>
        )}
        <ErrorMessage text={failure.value} />
        <button type="submit" class="is-main">
          Sign in
        </button>
      </form>
    </main>
  )
}
