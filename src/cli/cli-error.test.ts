import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { installation } from '../app/index.ts'
import { ConnectionError } from '../kubernetes/client/index.ts'
import { invalid, notFound, StatusError } from '../kubernetes/object/index.ts'
import { CliError, formatError, usageError } from './cli-error.ts'

const stack = { group: 'oarlock.dev', plural: 'stacks', kind: 'Stack' }

for (const [name, error, exitCode, message, details] of [
  ['a CliError', new CliError('no', { exitCode: 6 }), 6, 'no', []],
  ['an invalid command line', usageError('what?'), 2, 'what?', []],
  ['a missing object', notFound(stack, 'a'), 3, 'stacks.oarlock.dev "a" not found', []],
  [
    'an invalid object, one line per field',
    invalid(stack, 'a', [{ reason: 'FieldValueInvalid', field: 'spec.engine', message: 'must be one of terraform' }]),
    4,
    'Stack "a" is invalid',
    ['spec.engine: must be one of terraform'],
  ],
  ['a rejected request', new StatusError('Forbidden', 'not you'), 4, 'not you', []],
  ['a failing server', new StatusError('InternalError', 'broken'), 1, 'broken', []],
  ['a missing kubeconfig', new TypeError('no kubeconfig found: x'), 5, 'no kubeconfig found: x', []],
  ['anything else', new Error('boom'), 1, 'boom', []],
] as const) {
  test(`formatError() handles ${name}`, () => {
    const formatted = formatError(error)
    deepEqual([formatted.exitCode, formatted.message, formatted.details], [exitCode, message, details])
  })
}

test('formatError() suggests "oarlock up" when no server is reachable', () => {
  const formatted = formatError(
    new ConnectionError('https://127.0.0.1:1', 'GET /api', Object.assign(new Error('x'), { code: 'ECONNREFUSED' })),
  )
  deepEqual([formatted.exitCode, formatted.hint?.includes('oarlock up')], [5, true])
})

const forbidden = (verb: string, resource: string, where = ' in the namespace "shop"') =>
  new StatusError('Forbidden', `stacks is forbidden: User "ann" cannot ${verb} resource "${resource}" in API group "oarlock.dev"${where}`)

test('the hint of a forbidden request names the installed role that grants it', async () => {
  const { installationObjects } = await installation()
  type Role = { metadata: { name: string }; rules: { apiGroups?: string[]; resources?: string[]; verbs: string[] }[] }
  const roles = installationObjects({ policies: true }) as readonly Role[]
  const grants = (role: string, verb: string, resource: string) =>
    roles.some(
      ({ metadata, rules }) =>
        metadata.name === role && rules.some(rule => rule.resources?.includes(resource) && rule.verbs.includes(verb)),
    )
  let checked = 0
  for (const { rules } of roles.filter(({ metadata }) => ['oarlock:view', 'oarlock:edit', 'oarlock:admin'].includes(metadata.name))) {
    for (const { resources = [], verbs } of rules) {
      for (const [verb, resource] of verbs.flatMap(verb => resources.map(resource => [verb, resource] as const))) {
        const { hint = '' } = formatError(forbidden(verb, resource))
        const [, role = ''] =
          /^the ClusterRole (\S+) grants it in namespace shop: kubectl create rolebinding NAME --clusterrole=\1 /.exec(hint) ?? []
        equal(grants(role, verb, resource), true, `${verb} ${resource}: ${hint}`)
        checked++
      }
    }
  }
  equal(checked > 30, true)
  match(
    formatError(forbidden('list', 'workers', ' at the cluster scope')).hint ?? '',
    /oarlock:view grants it: kubectl create clusterrolebinding/,
  )
  // The smallest role, and one with everything else that an approval and a destruction need.
  match(formatError(forbidden('update', 'stacks/approval')).hint ?? '', /oarlock:approver/)
  match(formatError(forbidden('delete', 'stacks')).hint ?? '', /oarlock:destroyer/)
  match(formatError(forbidden('create', 'runs')).hint ?? '', /^only administrators/)
  equal(formatError(new StatusError('Forbidden', 'not you')).hint, undefined)
})
