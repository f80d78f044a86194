import { stored } from './stored.ts'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

export const theme = stored<Theme>('theme', 'system', (value): value is Theme => themes.includes(value as Theme))

/** The style sheet follows the attribute: without it the setting of the system decides. */
export function applyTheme(): void {
  theme.subscribe(now => {
    if (now === 'system') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = now
  })
}
