import type { Scaling } from '../../protocol/index.ts'
import { formatCount } from '../parts/format.ts'

/** Why a pool wanted this number of workers: that is busy + ceil(queued / slots), at least its minimum and at most its maximum. */
export function scalingReason({ to, min, max, queued, busy }: Omit<Scaling, 'pool' | 'atMs' | 'from'>): string {
  const demand = [queued > 0 && `${formatCount(queued, 'Run')} queued`, busy > 0 && `${formatCount(busy, 'worker')} busy`]
    .filter(Boolean)
    .join(', ')
  if (to === max && queued > 0) return `${demand}: limited to its maximum of ${max}`
  if (demand !== '') return demand
  return min > 0 && to === min ? `no Run queued: its minimum of ${min}` : 'no Run queued, no worker busy'
}
