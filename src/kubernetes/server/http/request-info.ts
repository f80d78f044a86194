import { parseFieldSelector } from '../../object/index.ts'

/** The name that a list or watch is restricted to by its field selector: a rule with resourceNames can allow it. */
export function selectedName(verb: string, query: URLSearchParams | undefined): string {
  if (query === undefined || (verb !== 'list' && verb !== 'watch')) return ''
  const selector = query.get('fieldSelector')
  if (!selector) return ''
  try {
    const { requirements } = parseFieldSelector(selector)
    const named = requirements.find(({ field, operator }) => field === 'metadata.name' && operator === '=')
    return named && !/[/%]/.test(named.value) ? named.value : ''
  } catch {
    // The verb parses the selector again and reports the error.
    return ''
  }
}
