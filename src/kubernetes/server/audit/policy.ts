export type AuditLevel = 'None' | 'Metadata' | 'Request' | 'RequestResponse'

export const auditLevels: readonly AuditLevel[] = ['None', 'Metadata', 'Request', 'RequestResponse']

export type ResourceRule = { readonly group: string; readonly resources: readonly string[]; readonly resourceNames: readonly string[] }

/** An empty list matches everything. */
export type AuditRule = {
  readonly level: AuditLevel
  readonly users: readonly string[]
  readonly userGroups: readonly string[]
  readonly verbs: readonly string[]
  readonly namespaces: readonly string[]
  readonly resources: readonly ResourceRule[]
  readonly nonResourceURLs: readonly string[]
}

/** The level of the first rule that matches; None without one. */
export type AuditPolicy = { readonly rules: readonly AuditRule[] }

/** A request, as far as a policy can select it. `resource` is undefined for paths that are no resources. */
export type AuditSubject = {
  readonly user: { readonly name: string; readonly groups: readonly string[] }
  readonly verb: string
  readonly path: string
  readonly resource:
    | { readonly group: string; readonly plural: string; readonly subresource: string; readonly namespace: string; readonly name: string }
    | undefined
}

const rule = (level: AuditLevel, fields: Partial<AuditRule>): AuditRule => ({
  level,
  users: [],
  userGroups: [],
  verbs: [],
  namespaces: [],
  resources: [],
  nonResourceURLs: [],
  ...fields,
})

const allOf = (group: string, ...resources: string[]): ResourceRule => ({ group, resources, resourceNames: [] })

/**
 * Metadata of writes, and of reads of what is secret: Secrets, states, backups. Without what components write continuously: renewals of
 * Leases, Events, reviews, logs of Runs.
 */
export const defaultPolicy: AuditPolicy = {
  rules: [
    rule('Metadata', { nonResourceURLs: ['/backup', '/encryption/*', '/state/*'] }),
    rule('Metadata', { resources: [allOf('', 'secrets')] }),
    rule('None', { verbs: ['get', 'list', 'watch', 'head'] }),
    rule('None', { verbs: ['update', 'patch'], resources: [allOf('coordination.k8s.io', 'leases')] }),
    rule('None', {
      resources: [allOf('', 'events'), allOf('events.k8s.io', 'events'), allOf('authorization.k8s.io'), allOf('authentication.k8s.io')],
    }),
    rule('None', { nonResourceURLs: ['/logs/*'] }),
    rule('Metadata', {}),
  ],
}

export function levelOf({ rules }: AuditPolicy, subject: AuditSubject): AuditLevel {
  for (const each of rules) if (matches(each, subject)) return each.level
  return 'None'
}

// As kube-apiserver does (staging/src/k8s.io/apiserver/pkg/audit/policy/checker.go).
function matches(each: AuditRule, { user, verb, path, resource }: AuditSubject): boolean {
  const { users, userGroups, verbs, namespaces, resources, nonResourceURLs } = each
  if (verbs.length > 0 && !verbs.includes(verb)) return false
  if (users.length > 0 && !users.includes(user.name)) return false
  if (userGroups.length > 0 && !userGroups.some(group => user.groups.includes(group))) return false
  if (namespaces.length > 0 || resources.length > 0) {
    if (!resource || (namespaces.length > 0 && !namespaces.includes(resource.namespace))) return false
    return resources.length === 0 || resources.some(selector => selects(selector, resource))
  }
  if (nonResourceURLs.length === 0) return true
  return !resource && nonResourceURLs.some(url => (url.endsWith('*') ? path.startsWith(url.slice(0, -1)) : path === url))
}

function selects({ group, resources, resourceNames }: ResourceRule, found: NonNullable<AuditSubject['resource']>): boolean {
  if (group !== found.group) return false
  if (resources.length === 0) return true
  if (resourceNames.length > 0 && !resourceNames.includes(found.name)) return false
  const { plural, subresource } = found
  const full = subresource === '' ? plural : `${plural}/${subresource}`
  return resources.some(
    pattern => pattern === full || pattern === '*' || (subresource !== '' && (pattern === `*/${subresource}` || pattern === `${plural}/*`)),
  )
}

/**
 * Reads Kubernetes' audit Policy.
 * @throws {Error} for anything that it would not follow.
 */
export function parsePolicy(file: unknown): AuditPolicy {
  const { apiVersion, kind, rules, omitStages, metadata: _, ...others } = asObject(file, 'the policy')
  if (kind !== 'Policy' || apiVersion !== 'audit.k8s.io/v1') throw new Error('it must be a Policy of audit.k8s.io/v1')
  rejectOthers(others, 'the policy')
  checkStages(omitStages)
  if (!Array.isArray(rules) || rules.length === 0) throw new Error('rules must be a list with at least one rule')
  return { rules: rules.map((each, index) => parseRule(each, `rules[${index}]`)) }
}

function parseRule(value: unknown, at: string): AuditRule {
  const { level, resources = [], omitStages, users, userGroups, verbs, namespaces, nonResourceURLs, ...others } = asObject(value, at)
  rejectOthers(others, at)
  checkStages(omitStages)
  if (!auditLevels.includes(level as AuditLevel)) throw new Error(`${at}.level must be one of ${auditLevels.join(', ')}`)
  if (!Array.isArray(resources)) throw new Error(`${at}.resources must be a list`)
  const lists = { users, userGroups, verbs, namespaces, nonResourceURLs }
  const read = Object.entries(lists).map(([name, list]) => [name, asNames(list, `${at}.${name}`)])
  return rule(level as AuditLevel, {
    ...Object.fromEntries(read),
    resources: resources.map((each, index) => parseResources(each, `${at}.resources[${index}]`)),
  })
}

function parseResources(value: unknown, at: string): ResourceRule {
  const { group = '', resources, resourceNames, ...others } = asObject(value, at)
  rejectOthers(others, at)
  if (typeof group !== 'string') throw new Error(`${at}.group must be a string`)
  return { group, resources: asNames(resources, `${at}.resources`), resourceNames: asNames(resourceNames, `${at}.resourceNames`) }
}

/** Only the stage ResponseComplete is logged: omitting others is what happens anyway. */
function checkStages(stages: unknown): void {
  if (asNames(stages, 'omitStages').includes('ResponseComplete'))
    throw new Error('omitStages must not contain ResponseComplete: use level None')
}

function rejectOthers(others: Record<string, unknown>, at: string): void {
  const [name] = Object.keys(others)
  if (name !== undefined) throw new Error(`${at} has the field ${name}, which is not supported`)
}

function asNames(value: unknown, at: string): readonly string[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value) && value.every(item => typeof item === 'string')) return value as string[]
  throw new Error(`${at} must be a list of strings`)
}

function asObject(value: unknown, at: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new Error(`${at} must be an object`)
}
