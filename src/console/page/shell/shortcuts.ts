/** What the keys do, for the help. */
export const shortcuts: readonly [keys: string, what: string][] = [
  ['/', 'Filter the table'],
  ['j', 'Next row'],
  ['k', 'Previous row'],
  ['Enter', 'Open the row'],
  ['x', 'Select the row'],
  ['g then a letter', 'Open a page: o Overview, s Stacks, r Runs, q Queue, w Workers, p Pools'],
  ['?', 'This help'],
  ['Esc', 'Close, or leave the filter'],
]

/** Letters after `g`. */
export const pageKeys: Readonly<Record<string, string>> = { o: '', s: 'stacks', r: 'runs', q: 'queue', w: 'workers', p: 'pools' }

/** Whether a key belongs to the element that has the focus, or to the browser. */
export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return true
  const target = event.target as HTMLElement
  return target.closest('input:not([type=checkbox]), textarea, select, dialog') !== null
}
