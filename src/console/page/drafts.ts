import type { StackYaml } from '../protocol/index.ts'
import { currentSession } from './session.ts'
import { stored } from './stored.ts'

/** YAML that a user has edited and not applied, and the Stack that was shown when the editing began. */
export type Draft = { readonly text: string; readonly base: Pick<StackYaml, 'yaml' | 'resourceVersion'> }

type Drafts = Readonly<Record<string, Draft>>
const none: Drafts = {}

/** In sessionStorage: a draft outlives other pages, a session that ends, and a sign-in at a provider, but not its tab. */
const drafts = stored('drafts', none, areDrafts, () => sessionStorage)

/** Of this Stack and the user who is signed in. */
export const draftOf = (path: string): Draft | undefined => drafts.peek()[keyOf(path)]

export function keepDraft(path: string, draft: Draft | undefined): void {
  const { [keyOf(path)]: _, ...others } = drafts.value
  const kept = draft ? { ...others, [keyOf(path)]: draft } : others
  drafts.value = Object.keys(kept).length === 0 ? none : kept
}

/** Discards all, after a confirmation if there are any. Returns false if the user does not confirm. */
export function discardDrafts(question: string): boolean {
  if (drafts.value !== none && !confirm(question)) return false
  drafts.value = none
  return true
}

/** Lets the browser ask before it closes or leaves the page while there are drafts. Returns a function that ends this. */
export function askBeforeClosing(): () => void {
  const ask = (event: BeforeUnloadEvent) => {
    if (drafts.value !== none) event.preventDefault()
  }
  window.addEventListener('beforeunload', ask)
  return () => window.removeEventListener('beforeunload', ask)
}

const keyOf = (path: string) => `${currentSession().user} ${path}`

function areDrafts(value: unknown): value is Drafts {
  if (typeof value !== 'object' || value === null) return false
  return Object.values(value as Record<string, Partial<Draft> | null>).every(
    draft => typeof draft?.text === 'string' && typeof draft.base?.yaml === 'string' && typeof draft.base.resourceVersion === 'string',
  )
}
