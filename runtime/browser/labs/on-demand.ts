/** Parts beside the list of labs that are loaded when they are first needed, as one file: several small files would be larger together. */
export { LabDialog } from './lab-dialog.tsx'
export { SignIn } from './sign-in.tsx'
