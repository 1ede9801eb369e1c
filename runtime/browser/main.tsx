import { render } from 'preact'
import { App } from './app.tsx'
import { recognize } from './state/client.ts'

void recognize()
const page = document.getElementById('page')
if (page !== null) render(<App />, page)
