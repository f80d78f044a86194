import { render } from 'preact'
import { loadSession, signInWithLink } from './session.ts'
import { App } from './shell/app.tsx'
import { applyTheme } from './shell/theme.ts'

applyTheme()
render(<App />, document.getElementById('app')!)

// The link of a sign-in can be used once, and must not stay in the history.
const link = /^#token=(.+)$/.exec(location.hash)?.[1]
if (link === undefined) void loadSession()
else {
  history.replaceState(null, '', location.pathname + location.search)
  void signInWithLink(decodeURIComponent(link))
}
