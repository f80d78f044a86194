import type { RunRow } from '../../protocol/index.ts'
import { Badge } from '../parts/badge.tsx'
import { formatWords } from '../parts/format.ts'
import { pathTo } from '../router.ts'

/** The attempts at the same work, each with its own page and log. */
export function Attempts({ attempts, current }: { readonly attempts: readonly RunRow[]; readonly current: string }) {
  if (attempts.length === 0) return null
  return (
    <nav class="attempts" aria-label="Attempts">
      {attempts.map(({ key, namespace, name, phase, trigger }, index) => (
        <a
          key={key}
          class="chip"
          href={pathTo(['runs', namespace, name])}
          title={`${name}: ${formatWords(trigger)}`}
          aria-current={key === current ? 'page' : undefined}
        >
          Attempt {index + 1} <Badge value={phase} />
        </a>
      ))}
    </nav>
  )
}
