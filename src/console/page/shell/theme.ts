import { effect } from '@preact/signals'
import { stored } from '../stored.ts'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

export const theme = stored<Theme>('theme', 'system')

/** Sets the theme of the document, now and whenever it changes. */
export function applyTheme(): void {
  effect(() => {
    const { dataset } = document.documentElement
    if (theme.value === 'system') delete dataset.theme
    else dataset.theme = theme.value
  })
}
