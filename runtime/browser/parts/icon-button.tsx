import { Icon, type IconName } from './icon.tsx'

interface IconButtonProps {
  readonly icon: IconName
  /** What it does: for screen readers, and at the pointer. */
  readonly title: string
  /** The state of a button that is a switch. */
  readonly isOn?: boolean
  readonly isDisabled?: boolean
  readonly onClick: () => void
}

/** A button that is a picture. */
export const IconButton = ({ icon, title, isOn, isDisabled = false, onClick }: IconButtonProps) => (
  <button
    type="button"
    class="tool is-quiet"
    title={title}
    aria-label={title}
    aria-pressed={isOn}
    disabled={isDisabled}
    onClick={onClick}
  >
    <Icon name={icon} />
  </button>
)
