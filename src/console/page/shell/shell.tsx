import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Session } from '../../protocol/index.ts'
import { Icon } from '../parts/icon.tsx'
import { lazy } from '../parts/lazy.tsx'
import { Menu } from '../parts/menu.tsx'
import { Notices } from '../parts/notices.tsx'
import { address, navigate, pageUrl } from '../router.ts'
import { signOut } from '../session.ts'
import { ConnectionState } from './connection.tsx'
import { Logo } from './logo.tsx'
import { shownPages } from './pages.ts'
import { isTyping, pageKeys } from './shortcuts.ts'
import { theme, themes } from './theme.ts'

const Help = lazy(async () => (await import('./help.tsx')).Help)

/** What is around every page: the sidebar, the header and the messages. */
export function Shell({ session, children }: { readonly session: Session; readonly children: ComponentChildren }) {
  const isNavOpen = useSignal(false)
  const isHelpOpen = useSignal(false)
  const current = address.value.path[0] ?? ''
  const { path } = address.value
  useEffect(() => {
    isNavOpen.value = false
  }, [path.join('/')])
  useEffect(() => {
    let isAfterG = false
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape') isNavOpen.value = false
      if (isTyping(event)) return
      if (event.key === '?') isHelpOpen.value = true
      const page = isAfterG ? pageKeys[event.key] : undefined
      isAfterG = event.key === 'g'
      if (page !== undefined) navigate(pageUrl([page].filter(Boolean)))
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [isHelpOpen, isNavOpen])
  return (
    <div class="shell">
      <a class="skip" href="#main" data-document="">
        Skip to the content
      </a>
      <header class="top">
        <button
          type="button"
          class="button icon-only plain nav-toggle"
          aria-label="Pages"
          aria-expanded={isNavOpen.value}
          aria-controls="nav"
          onClick={() => {
            isNavOpen.value = !isNavOpen.value
          }}
        >
          <Icon name="menu" />
        </button>
        <Logo />
        <span class="grow" />
        {session.readOnly && (
          <span class="badge" title="The server was started with a console that changes nothing">
            Read only
          </span>
        )}
        <ConnectionState />
        <button
          type="button"
          class="button icon-only plain"
          aria-label="Keys and filters"
          title="Keys and filters (?)"
          onClick={() => {
            isHelpOpen.value = true
          }}
        >
          <Icon name="help" />
        </button>
        <UserMenu session={session} />
      </header>
      <nav id="nav" class={isNavOpen.value ? 'open' : ''} aria-label="Pages">
        <ul>
          {shownPages(session).map(page => (
            <li key={page.path}>
              <a href={pageUrl(page.path ? [page.path] : [])} aria-current={page.path === current ? 'page' : undefined}>
                <Icon name={page.icon} />
                {page.title}
              </a>
            </li>
          ))}
        </ul>
        <p class="version">Oarlock {session.version}</p>
      </nav>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Notices />
      {isHelpOpen.value && (
        <Help
          onClose={() => {
            isHelpOpen.value = false
          }}
        />
      )}
    </div>
  )
}

function UserMenu({ session }: { readonly session: Session }) {
  return (
    <Menu label={`User ${session.user}`} icon="user" compact>
      <p class="user">
        <strong>{session.user}</strong>
        {session.groups.length > 0 && <span class="muted">{session.groups.join(', ')}</span>}
      </p>
      <fieldset class="choices">
        <legend>Theme</legend>
        {themes.map(name => (
          <label key={name}>
            <input
              type="radio"
              name="theme"
              checked={theme.value === name}
              onChange={() => {
                theme.value = name
              }}
            />
            {name === 'system' ? 'As the system' : name === 'light' ? 'Light' : 'Dark'}
          </label>
        ))}
      </fieldset>
      <button type="button" class="button wide" onClick={() => void signOut()}>
        Sign out
      </button>
    </Menu>
  )
}
