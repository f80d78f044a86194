import { render } from 'preact'
import { App } from './app.tsx'
import { startRouter } from './router.ts'
import { startSession, watchLinks } from './session.ts'
import { applyTheme } from './theme.ts'

applyTheme()
startRouter()
watchLinks()
void startSession()
render(<App />, document.getElementById('app') as HTMLElement)
