/**
 * What is no lab and not the list of labs: loaded when it is first needed, as one file. Several files would be larger together, and
 * would share small ones that each of them asks for.
 */
export { StudentLink } from '../classes/student-link.tsx'
export { Gallery } from '../examples/gallery.tsx'
export { ImportDialog } from '../importing/import-dialog.tsx'
export { NodeTypeDialog } from '../node-types/node-type-dialog.tsx'
export { ServiceScreen } from '../service/service-screen.tsx'
export { ClassesLine } from './classes-line.tsx'
export { LabDialog } from './lab-dialog.tsx'
export { LabSelection } from './lab-selection.tsx'
export { LabThumbnail } from './lab-thumbnail.tsx'
export { SignIn } from './sign-in.tsx'
