import { render } from 'preact'
import { App, loadAhead } from './app.tsx'
import { hasUnsavedTexts } from './editing/config-draft.ts'
import { recognize } from './state/client.ts'
import { dismissOld } from './state/notices.ts'
import { linkToken } from './state/route.ts'

// The link of a student says who the user is.
if (linkToken.value === undefined) void recognize()
addEventListener('beforeunload', (event) => {
  if (hasUnsavedTexts()) event.preventDefault()
})
addEventListener('hashchange', dismissOld)
const page = document.getElementById('page')
if (page !== null) render(<App />, page)
loadAhead()
