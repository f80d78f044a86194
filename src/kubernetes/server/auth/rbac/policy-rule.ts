/** One rule of a Role or ClusterRole. */
export type PolicyRule = {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
}

/** The request that a rule is matched against: a resource request has a `resource`, any other a `path`. */
export type RuleRequest = {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  readonly name?: string
  readonly path?: string
}

/** Whether `rule` allows `request`, as `RuleAllows` of Kubernetes' RBAC authorizer. */
export function ruleAllows(rule: PolicyRule, request: RuleRequest): boolean {
  if (!rule.verbs.includes('*') && !rule.verbs.includes(request.verb)) return false
  if (request.path !== undefined) return matchesPath(rule.nonResourceURLs, request.path)
  const { apiGroups, resourceNames } = rule
  if (!apiGroups || !(apiGroups.includes('*') || apiGroups.includes(request.group))) return false
  if (!matchesResource(rule.resources, request.resource, request.subresource)) return false
  return !resourceNames || resourceNames.length === 0 || (request.name !== undefined && resourceNames.includes(request.name))
}

function matchesResource(resources: readonly string[] | undefined, resource: string, subresource: string | undefined): boolean {
  if (!resources) return false
  if (resources.includes('*')) return true
  if (!subresource) return resources.includes(resource)
  return resources.includes(`${resource}/${subresource}`) || resources.includes(`*/${subresource}`)
}

function matchesPath(urls: readonly string[] | undefined, path: string): boolean {
  return urls?.some(url => url === '*' || url === path || (url.endsWith('*') && path.startsWith(withoutStars(url)))) ?? false
}

/** The parts of `wanted` that no rule of `held` covers, with one verb and one resource or URL each; empty if all are covered. */
export function uncoveredRules(held: readonly PolicyRule[], desired: readonly PolicyRule[]): PolicyRule[] {
  // A user with every permission covers every rule, whatever its size.
  const open = held.some(isEverything) ? desired.filter(rule => rule.nonResourceURLs?.length) : desired
  return open.flatMap(breakDown).filter(part => !held.some(rule => covers(rule, part)))
}

const maxParts = 100_000
const maxComparisons = 5_000_000

/** True if {@link uncoveredRules} would take seconds or too much memory: three lists of 300 values in one rule make 27,000,000 parts. */
export function exceedsComparisonLimit(held: readonly PolicyRule[], desired: readonly PolicyRule[]): boolean {
  let parts = 0
  for (const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [], verbs } of desired) {
    parts += verbs.length * (apiGroups.length * resources.length * Math.max(resourceNames.length, 1) + nonResourceURLs.length)
  }
  return parts > maxParts || parts * held.length > maxComparisons
}

function isEverything({ verbs, apiGroups, resources, resourceNames }: PolicyRule): boolean {
  return verbs.includes('*') && apiGroups?.includes('*') === true && resources?.includes('*') === true && !resourceNames?.length
}

function breakDown({ apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [], verbs }: PolicyRule): PolicyRule[] {
  const parts: PolicyRule[] = []
  const names = resourceNames.length > 0 ? resourceNames.map(name => [name]) : [undefined]
  for (const group of apiGroups) {
    for (const resource of resources) {
      for (const verb of verbs) {
        for (const name of names)
          parts.push({ apiGroups: [group], resources: [resource], verbs: [verb], ...(name && { resourceNames: name }) })
      }
    }
  }
  for (const url of nonResourceURLs) for (const verb of verbs) parts.push({ nonResourceURLs: [url], verbs: [verb] })
  return parts
}

/** Whether `rule` covers `part`, which has one verb, and one group and resource or one URL. */
function covers(rule: PolicyRule, part: PolicyRule): boolean {
  if (!hasOrStar(rule.verbs, part.verbs[0])) return false
  const [url] = part.nonResourceURLs ?? []
  if (url !== undefined) {
    return rule.nonResourceURLs?.some(held => held === url || (held.endsWith('*') && url.startsWith(withoutStars(held)))) ?? false
  }
  if (!hasOrStar(rule.apiGroups, part.apiGroups?.[0])) return false
  const resource = part.resources?.[0] ?? ''
  const slash = resource.indexOf('/')
  const isCovered = hasOrStar(rule.resources, resource) || (slash >= 0 && rule.resources?.includes(`*${resource.slice(slash)}`) === true)
  if (!isCovered) return false
  if (!rule.resourceNames?.length) return true
  const [name] = part.resourceNames ?? []
  return name !== undefined && rule.resourceNames.includes(name)
}

const hasOrStar = (list: readonly string[] | undefined, value: string | undefined) =>
  list !== undefined && (list.includes('*') || (value !== undefined && list.includes(value)))

const withoutStars = (url: string) => url.replace(/\*+$/, '')

/** Formats rules for an escalation error: rules that differ only in their verbs are combined. */
export function describeRules(rules: readonly PolicyRule[]): string[] {
  const texts: string[] = []
  const byTarget = new Map<string, { rule: PolicyRule; verbs: string[] }>()
  for (const rule of rules) {
    if (rule.nonResourceURLs) {
      texts.push(describeRule(rule))
      continue
    }
    const target = JSON.stringify([rule.apiGroups, rule.resources, rule.resourceNames])
    const known = byTarget.get(target)
    if (known) known.verbs.push(...rule.verbs)
    else byTarget.set(target, { rule, verbs: [...rule.verbs] })
  }
  for (const { rule, verbs } of byTarget.values()) texts.push(describeRule({ ...rule, verbs }))
  return [...new Set(texts)].sort()
}

function describeRule({ apiGroups, resources, nonResourceURLs, resourceNames, verbs }: PolicyRule): string {
  const parts: string[] = []
  const add = (name: string, values: readonly string[] | undefined) => {
    if (values && values.length > 0) parts.push(`${name}:${quoteAll(values)}`)
  }
  add('APIGroups', apiGroups)
  add('Resources', resources)
  add('NonResourceURLs', nonResourceURLs)
  add('ResourceNames', resourceNames)
  add('Verbs', verbs)
  return `{${parts.join(', ')}}`
}

/** Formats a list as `["a" "b"]`, as in Kubernetes' messages. */
export function quoteAll(values: readonly string[]): string {
  return `[${values.map(value => JSON.stringify(value)).join(' ')}]`
}
