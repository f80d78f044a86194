/** Icons of 16 × 16, as lines. */
const paths = {
  overview: 'M2.5 2.5h4.5v4.5h-4.5zM9 2.5h4.5v4.5h-4.5zM2.5 9h4.5v4.5h-4.5zM9 9h4.5v4.5h-4.5z',
  stacks: 'M8 2 14 5 8 8 2 5zM2.5 8 8 10.8 13.5 8M2.5 11 8 13.8 13.5 11',
  runs: 'M5 3.2v9.6L13 8z',
  queue: 'M3 4h10M3 8h10M3 12h6',
  workers: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01',
  pools: 'M2.5 5.5c0-1.7 2.5-2.5 5.5-2.5s5.5.8 5.5 2.5S11 8 8 8 2.5 7.2 2.5 5.5zM2.5 5.5v5c0 1.7 2.5 2.5 5.5 2.5s5.5-.8 5.5-2.5v-5',
  tenants:
    'M6 7.5a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4zM2 13c0-2.5 1.7-4 4-4s4 1.5 4 4M10.5 3.3a2.2 2.2 0 0 1 0 4M11.5 9.3c1.6.5 2.5 1.8 2.5 3.7',
  controllers: 'M3 4.5h4M11 4.5h2M3 11.5h2M9 11.5h4M7 2.8v3.4M5 9.8v3.4M7 4.5h4M5 11.5h4',
  partitions: 'M2.5 2.5h11v11h-11zM8 2.5v11M2.5 8h11',
  menu: 'M2.5 4h11M2.5 8h11M2.5 12h11',
  close: 'M4 4l8 8M12 4l-8 8',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5 14 14',
  columns: 'M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10',
  views: 'M4 2.5h8v11L8 10.5l-4 3z',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  up: 'M4 10l4-4 4 4',
  down: 'M4 6l4 4 4-4',
  right: 'M6 4l4 4-4 4',
  user: 'M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8zM3 13.5c0-2.7 2-4 5-4s5 1.3 5 4',
  theme: 'M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11',
  help: 'M5.8 6a2.2 2.2 0 1 1 3.3 1.9c-.8.5-1.1.9-1.1 1.7M8 12.2v.01',
} as const

export type IconName = keyof typeof paths

/** Hidden from screen readers: the element around it has the name. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  )
}
