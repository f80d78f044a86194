import { useEffect } from 'preact/hooks'
import type { Session, TableKind } from '../../protocol/index.ts'
import { OverviewPage } from '../overview/overview-page.tsx'
import { Empty } from '../parts/empty.tsx'
import { lazy } from '../parts/lazy.tsx'
import { address } from '../router.ts'
import { loadSession, sessionState } from '../session.ts'
import { closeTabStream } from '../stream/tab.ts'
import { TablePage } from '../table/table-page.tsx'
import { shownPages } from './pages.ts'
import { Shell } from './shell.tsx'
import { SignInPage } from './sign-in.tsx'

const ObjectPage = lazy(async () => (await import('../object/object-page.tsx')).ObjectPage)

export function App() {
  const state = sessionState.value
  const isSignedIn = state.kind === 'signed-in'
  useEffect(() => {
    if (!isSignedIn) closeTabStream()
  }, [isSignedIn])
  if (state.kind === 'signed-in')
    return (
      <Shell session={state.session}>
        <Page session={state.session} />
      </Shell>
    )
  if (state.kind === 'signed-out') return <SignInPage options={state.options} message={state.message} />
  if (state.kind === 'loading') return <main class="loading" aria-busy="true" tabIndex={-1} />
  return (
    <main class="sign-in" tabIndex={-1}>
      <Empty title="The server cannot be reached">
        <p>{state.message}</p>
        <button type="button" class="button primary" onClick={() => void loadSession()}>
          Try again
        </button>
      </Empty>
    </main>
  )
}

function Page({ session }: { readonly session: Session }) {
  const [first = '', namespace, name, ...rest] = address.value.path
  const page = shownPages(session).find(({ path }) => path === first)
  useEffect(() => {
    document.title = [name, page?.title ?? 'Not found', 'Oarlock'].filter(Boolean).join(' · ')
  }, [page, name])
  if (page && namespace === undefined)
    return page.path === '' ? <OverviewPage /> : <TablePage key={page.path} kind={page.path as TableKind} title={page.title} />
  if ((first === 'stacks' || first === 'runs') && namespace !== undefined && name !== undefined && rest.length === 0)
    return <ObjectPage key={`${first}/${namespace}/${name}`} kind={first} namespace={namespace} name={name} />
  return (
    <Empty title="There is no such page">
      <p>
        <a href="/console/">Open the overview</a>
      </p>
    </Empty>
  )
}
