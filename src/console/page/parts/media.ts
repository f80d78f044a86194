import { signal } from '@preact/signals'

const narrow = window.matchMedia('(max-width: 700px)')
/** Whether the page is as narrow as a phone: tables are cards then. Must be the width in the style sheets. */
export const isNarrow = signal(narrow.matches)
narrow.addEventListener('change', ({ matches }) => {
  isNarrow.value = matches
})
