import { KeyList } from '../editing/key-list.tsx'
import { RadioGroup } from '../parts/radio-group.tsx'
import { characterKeys } from '../state/character-keys.ts'
import { theme, themes } from '../state/theme.ts'

const themeNames = { system: 'As the system', light: 'Light', dark: 'Dark' } as const

/** What a user chooses for this browser: colours, and keys. */
export const SettingsScreen = () => (
  <>
    <div class="labs-head">
      <h2>Settings</h2>
    </div>
    <p class="muted">They are stored in this browser.</p>
    <section class="setting">
      <h3>Colours</h3>
      <RadioGroup
        label="Colours"
        value={theme.value}
        options={themes.map((name) => [name, themeNames[name]])}
        onChange={(name) => {
          theme.value = name
        }}
      />
    </section>
    <section class="setting">
      <h3>Keys of a lab</h3>
      <label class="flag">
        <input
          type="checkbox"
          checked={characterKeys.value === 'on'}
          onChange={(event) => {
            characterKeys.value = event.currentTarget.checked ? 'on' : 'off'
          }}
        />
        Keys of one character are commands
      </label>
      <p class="help">If this is off, all commands are still in the command bar (Ctrl+K).</p>
      <KeyList />
    </section>
  </>
)
