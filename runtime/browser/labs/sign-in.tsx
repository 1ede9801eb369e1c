import { useSignal } from '@preact/signals'
import { logIn } from '../state/client.ts'

/** Asks for credentials, where the service needs them. */
export function SignIn() {
  const isByToken = useSignal(true)
  const fault = useSignal('')
  const send = async (form: HTMLFormElement) => {
    const text = (name: string) => (form.elements.namedItem(name) as HTMLInputElement | null)?.value ?? ''
    fault.value = ''
    try {
      await logIn(
        isByToken.value ? { token: text('token').trim() } : { user: text('user'), password: text('password') },
      )
    } catch (error) {
      fault.value = error instanceof Error ? error.message : String(error)
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
        <div class="segments" role="radiogroup" aria-label="Sign in by">
          {([true, false] as const).map((it) => (
            <label key={String(it)} class={isByToken.value === it ? 'is-active' : ''}>
              <input
                type="radio"
                name="way"
                checked={isByToken.value === it}
                onChange={() => {
                  isByToken.value = it
                }}
              />
              {it ? 'Token' : 'User and password'}
            </label>
          ))}
        </div>
        {isByToken.value ? (
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
        {fault.value !== '' && (
          <p class="reason" role="alert" dir="auto">
            {fault.value}
          </p>
        )}
        <button type="submit" class="is-main">
          Sign in
        </button>
      </form>
    </main>
  )
}
