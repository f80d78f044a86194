import type { ComponentChildren } from 'preact'

/** What is shown in place of content: what happened, and the next step. */
export function Notice({
  title,
  children,
  isError = false,
}: {
  readonly title: string
  readonly children?: ComponentChildren
  readonly isError?: boolean
}) {
  return (
    <div class={`notice ${isError ? 'bad' : ''}`} role={isError ? 'alert' : undefined}>
      <p class="notice-title">{title}</p>
      {children}
    </div>
  )
}
