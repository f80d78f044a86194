import type { Condition } from '../../kubernetes/object/index.ts'

/** `Ready=False Progressing "…" +Reconciling`: reason and message of a condition are omitted where they equal those of Ready. */
export function formatConditions(conditions: readonly Condition[] | undefined): string {
  const ready = conditions?.find(({ type }) => type === 'Ready')
  if (!ready) return 'no conditions'
  const others = conditions!
    .filter(condition => condition !== ready && !(condition.type === 'Drifted' && condition.status === 'False'))
    .map(({ type, status, reason, message }) => {
      const name = status === 'True' ? type : `${type}=${status}`
      const detail = [...(reason === ready.reason ? [] : [reason]), ...(message === ready.message ? [] : [message])].join(': ')
      return detail === '' ? ` +${name}` : ` +${name}(${detail})`
    })
  return `Ready=${ready.status} ${ready.reason} "${ready.message}"${others.join('')}`
}
