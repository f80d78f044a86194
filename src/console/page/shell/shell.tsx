import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { askBeforeClosing, discardDrafts } from '../drafts.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Icon } from '../parts/icon.tsx'
import { isNarrow } from '../parts/media.ts'
import { useShortcuts } from '../parts/shortcuts.ts'
import { pathTo, route } from '../router.ts'
import { currentSession, reportActivity, signOut } from '../session.ts'
import { Tab } from '../stream/tab.ts'
import { TabContext } from '../stream/use-view.ts'
import { type Theme, theme, themes } from '../theme.ts'
import { ConnectionState } from './connection-state.tsx'
import { Content } from './content.tsx'
import { type Page, pagesFor, phonePages } from './navigation.ts'
import { ShortcutHelp } from './shortcut-help.tsx'

/** The page of a user who is signed in: navigation, header, and the content of the route. */
export function Shell() {
  const session = currentSession()
  const tab = useMemo(() => new Tab(), [])
  useEffect(() => () => tab.close(), [tab])
  useEffect(reportActivity, [])
  useEffect(askBeforeClosing, [])
  const isHelpOpen = useSignal(false)
  const isMoreOpen = useSignal(false)
  useShortcuts({
    '?': () => {
      isHelpOpen.value = true
    },
  })
  const pages = pagesFor(session)
  const current = route.value.path[0] ?? ''
  const label = pages.find(({ path }) => path === current)?.label
  useEffect(() => {
    const name = route.value.path[2] ?? label ?? 'Not found'
    document.title = `${name} · Oarlock`
    isMoreOpen.value = false
  }, [route.value.path.join('/'), label])
  return (
    <TabContext.Provider value={tab}>
      <div class="shell">
        <a class="skip" href="#content">
          Skip to the content
        </a>
        <nav class="sidebar" aria-label="Pages">
          <a class="brand" href={pathTo([])}>
            <Brand />
            Oarlock
          </a>
          <ul class="plain">
            {pages.map(page => (
              <li key={page.path}>
                <PageLink page={page} current={current} />
              </li>
            ))}
          </ul>
          <p class="version">{session.version}</p>
        </nav>
        <header class="top">
          <ConnectionState />
          {session.readOnly && <span class="tag">read-only</span>}
          {!isNarrow.value && (
            <>
              <ThemeSwitch />
              <button type="button" class="quiet" aria-label="Keyboard shortcuts and filters" onClick={() => (isHelpOpen.value = true)}>
                ?
              </button>
            </>
          )}
          <span class="user" title={[session.user, ...session.groups].join('\n')}>
            {session.user}
          </span>
          <button
            type="button"
            class="quiet"
            onClick={() => discardDrafts('Sign out and discard the YAML that you have edited and not applied?') && void signOut()}
          >
            Sign out
          </button>
        </header>
        <main id="content" tabIndex={-1}>
          <Content />
        </main>
        {isNarrow.value && (
          <nav class="bottom" aria-label="Main pages">
            {pages.slice(0, phonePages).map(page => (
              <PageLink key={page.path} page={page} current={current} />
            ))}
            <button type="button" onClick={() => (isMoreOpen.value = true)}>
              <Icon name="more" />
              <span>More</span>
            </button>
          </nav>
        )}
      </div>
      {isHelpOpen.value && <ShortcutHelp onClose={() => (isHelpOpen.value = false)} />}
      {isMoreOpen.value && (
        <Dialog title="More" onClose={() => (isMoreOpen.value = false)}>
          <ul class="plain more">
            {pages.slice(phonePages).map(page => (
              <li key={page.path}>
                <PageLink page={page} current={current} />
              </li>
            ))}
          </ul>
          <button
            type="button"
            onClick={() => {
              isMoreOpen.value = false
              isHelpOpen.value = true
            }}
          >
            Help
          </button>
          <ThemeSwitch />
        </Dialog>
      )}
    </TabContext.Provider>
  )
}

function PageLink({ page: { path, label, icon }, current }: { readonly page: Page; readonly current: string }) {
  return (
    <a class="page-link" href={pathTo(path === '' ? [] : [path])} aria-current={path === current ? 'page' : undefined}>
      <Icon name={icon} />
      <span>{label}</span>
    </a>
  )
}

function ThemeSwitch() {
  return (
    <label class="theme">
      <span class="hidden">Colours</span>
      <select
        value={theme.value}
        onChange={({ currentTarget }) => {
          theme.value = currentTarget.value as Theme
        }}
      >
        {themes.map(name => (
          <option key={name} value={name}>
            {{ system: 'System colours', light: 'Light', dark: 'Dark' }[name]}
          </option>
        ))}
      </select>
    </label>
  )
}

const Brand = () => (
  <svg class="brand-mark" viewBox="0 0 32 32" aria-hidden="true">
    <path d="M8 10v5a8 8 0 0 0 16 0v-5M16 6v20" />
  </svg>
)
