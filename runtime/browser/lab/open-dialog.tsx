import type { LabWindow } from '../editing/lab-window.ts'
import { BulkLinkDialog } from './bulk-link-dialog.tsx'
import { CommandBar } from './command-bar.tsx'
import { DeleteDialog } from './delete-dialog.tsx'
import { ExportDialog } from './export-dialog.tsx'
import { KeysDialog } from './keys-dialog.tsx'
import { ReplaceDialog } from './replace-dialog.tsx'
import { SymbolDialog } from './symbol-dialog.tsx'

const dialogs = {
  bar: CommandBar,
  links: BulkLinkDialog,
  export: ExportDialog,
  delete: DeleteDialog,
  symbol: SymbolDialog,
  replace: ReplaceDialog,
  keys: ({ window: lab }: { window: LabWindow }) => <KeysDialog window={lab} onClose={() => lab.escape()} />,
} as const
export type DialogName = keyof typeof dialogs

/** The dialog of a lab that is open. */
export function OpenDialog({ window: lab, name }: { window: LabWindow; name: DialogName }) {
  const View = dialogs[name]
  return <View window={lab} />
}
