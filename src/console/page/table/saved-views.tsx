import type { Signal } from '@preact/signals'
import { Icon } from '../parts/icon.tsx'
import { Menu } from '../parts/menu.tsx'
import { navigate, pathTo } from '../router.ts'

export type SavedView = { readonly name: string; readonly filter: string; readonly sort?: string }

export const areSavedViews = (value: unknown): value is readonly SavedView[] =>
  Array.isArray(value) && value.every(view => typeof view?.name === 'string' && typeof view?.filter === 'string')

/** Filters with a name, kept in this browser. */
export function SavedViewsMenu({
  kind,
  views,
  filter,
  sort,
}: {
  readonly kind: string
  readonly views: Signal<readonly SavedView[]>
  readonly filter: string
  readonly sort: string | undefined
}) {
  const save = (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const name = String(new FormData(form).get('name')).trim()
    if (name === '') return
    views.value = [...views.value.filter(view => view.name !== name), { name, filter, ...(sort && { sort }) }]
    form.reset()
  }
  return (
    <Menu label="Views" icon="bookmark">
      {views.value.length === 0 && <p class="hint">A view is a filter and an order with a name. Views are kept in this browser.</p>}
      <ul class="plain">
        {views.value.map(view => (
          <li key={view.name} class="saved-view">
            <a href={pathTo([kind], { filter: view.filter, sort: view.sort })} title={view.filter}>
              {view.name}
            </a>
            <button
              type="button"
              class="quiet square"
              aria-label={`Remove view ${view.name}`}
              onClick={() => {
                views.value = views.value.filter(other => other !== view)
              }}
            >
              <Icon name="close" />
            </button>
          </li>
        ))}
      </ul>
      <form class="inline" onSubmit={save}>
        <input name="name" type="text" aria-label="Name of the view" placeholder="Name of the current filter" required maxLength={60} />
        <button type="submit">Save</button>
      </form>
      {(filter || sort) && (
        <button type="button" class="quiet" onClick={() => navigate(pathTo([kind]))}>
          Clear filter and order
        </button>
      )}
    </Menu>
  )
}
