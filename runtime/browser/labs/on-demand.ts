/** What is shown beside the list of labs when it is asked for: one part of the page, as many small ones are larger together. */
export { LabDialog } from './lab-dialog.tsx'
export { SignIn } from './sign-in.tsx'
