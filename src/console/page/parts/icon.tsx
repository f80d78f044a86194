const paths = {
  overview: 'M3 3h5v5H3zM12 3h5v5h-5zM3 12h5v5H3zM12 12h5v5h-5z',
  stacks: 'M10 2.5 17.5 6.5 10 10.5 2.5 6.5zM3 10.2l7 3.8 7-3.8M3 13.7l7 3.8 7-3.8',
  runs: 'M5.5 3.5 16 10 5.5 16.5z',
  queue: 'M3 5h14M3 10h14M3 15h8',
  workers: 'M3 4h14v5H3zM3 11.5h14v5H3zM6 6.5h.01M6 14h.01',
  pools:
    'M4 6c0-1.4 2.7-2.5 6-2.5S16 4.6 16 6s-2.7 2.5-6 2.5S4 7.4 4 6zM4 6v8c0 1.4 2.7 2.5 6 2.5s6-1.1 6-2.5V6M4 10c0 1.4 2.7 2.5 6 2.5s6-1.1 6-2.5',
  tenants: 'M7 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2 17c0-3 2-5 5-5s5 2 5 5M13 3.3a3 3 0 0 1 0 5.4M14.5 12.3c2 .6 3.5 2.4 3.5 4.7',
  controllers:
    'M10 7a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM10 2.5v2M10 15.5v2M2.5 10h2M15.5 10h2M4.7 4.7l1.4 1.4M13.9 13.9l1.4 1.4M15.3 4.7l-1.4 1.4M6.1 13.9l-1.4 1.4',
  partitions: 'M3 3h14v14H3zM10 3v14M3 10h7',
  more: 'M4.5 9.3v1.4M10 9.3v1.4M15.5 9.3v1.4M3.8 10h1.4M9.3 10h1.4M14.8 10h1.4',
  close: 'M5 5l10 10M15 5 5 15',
  columns: 'M3 4h14v12H3zM8 4v12M12.5 4v12',
  bookmark: 'M5.5 3h9v14L10 13.5 5.5 17z',
  copy: 'M7 7h9v9H7zM4 13V4h9',
} as const

export type IconName = keyof typeof paths

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  )
}
