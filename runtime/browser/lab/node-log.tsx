import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { LabNode } from '../../../src/client/patchbay.ts'
import { path } from '../../../src/compute/remote/paths.ts'
import { ErrorMessage } from '../parts/error-message.tsx'
import { Icon } from '../parts/icon.tsx'
import { IconButton } from '../parts/icon-button.tsx'
import { client } from '../state/client.ts'
import { messageOf } from '../state/notices.ts'

/** Control sequences of terminals (ECMA-48, 5.4; OSC of xterm), and other control characters than line feed and tab. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controls = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.|[\x00-\x08\x0b-\x1f\x7f]/g

/** What the console of a node has shown last, also while it does not run. */
export function NodeLog({ node: { project_id, node_id, name, status } }: { node: LabNode }) {
  const text = useSignal<string | undefined>(undefined)
  const failure = useSignal('')
  const read = async () => {
    failure.value = ''
    try {
      const params = { project_id, node_id }
      const answer = await client.answer('GET /v2/projects/{project_id}/nodes/{node_id}/console/log', { params })
      text.value = (await answer.text()).replace(controls, '').trim()
    } catch (error) {
      failure.value = messageOf(error)
    }
  }
  useEffect(() => void read(), [node_id, status])
  const whole = `${path`/v2/projects/${project_id}/nodes/${node_id}/console/log`}?lines=99999`
  return (
    <div class="node-files">
      <ErrorMessage text={failure.value} />
      {text.value === '' && <p class="muted">No console output yet.</p>}
      {text.value !== undefined && text.value !== '' && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard
        <section class="log" tabIndex={0} aria-label={`Log of ${name}`}>
          {text.value}
        </section>
      )}
      <div class="row">
        <a class="button" href={whole} download={`${name}.log`}>
          <Icon name="download" /> Download
        </a>
        <span class="spacer" />
        <IconButton icon="reload" title="Read the log again" onClick={() => void read()} />
      </div>
    </div>
  )
}
