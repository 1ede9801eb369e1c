/** What a lab shows first when it is asked for: one part of the page, as many small ones are larger together. */
export { ConsoleScreen } from '../console/console-screen.tsx'
export { DockView } from '../console/dock-view.tsx'
export { DrawingPanel } from '../drawings/drawing-panel.tsx'
export { BulkLinkDialog } from './bulk-link-dialog.tsx'
export { ConfigEditor } from './config-editor.tsx'
export { KeysDialog } from './keys-dialog.tsx'
export { LinkPanel } from './link-panel.tsx'
export { ListView } from './list-view.tsx'
