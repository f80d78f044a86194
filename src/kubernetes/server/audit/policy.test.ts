import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AuditSubject, defaultPolicy, levelOf, parsePolicy } from './policy.ts'

/** Of `VERB PATH`, or `VERB GROUP/PLURAL[/SUBRESOURCE] NAMESPACE/NAME` with `core` for the core group. */
function subject(text: string, name = 'jane', groups: string[] = []): AuditSubject {
  const [verb = '', target = '', object = ''] = text.split(' ')
  const user = { name, groups }
  if (target.startsWith('/')) return { user, verb, path: target, resource: undefined }
  const [group, plural = '', subresource = ''] = target.split('/')
  const [namespace = '', objectName = ''] = object.split('/')
  return {
    user,
    verb,
    path: '',
    resource: { group: group === 'core' ? '' : (group ?? ''), plural, subresource, namespace, name: objectName },
  }
}

for (const [text, level] of [
  ['create core/configmaps default/a', 'Metadata'],
  ['delete core/secrets default/a', 'Metadata'],
  ['update oarlock.dev/stacks/approval default/a', 'Metadata'],
  ['deletecollection core/pods default', 'Metadata'],
  ['create core/serviceaccounts/token default/a', 'Metadata'],
  ['create coordination.k8s.io/leases default/a', 'Metadata'],
  ['update coordination.k8s.io/leases default/a', 'None'],
  ['create events.k8s.io/events default/a', 'None'],
  ['create authentication.k8s.io/tokenreviews', 'None'],
  ['create authorization.k8s.io/subjectaccessreviews', 'None'],
  ['list core/secrets default', 'Metadata'],
  ['get core/secrets default/a', 'Metadata'],
  ['get core/configmaps default/a', 'None'],
  ['watch core/pods default', 'None'],
  ['get /backup', 'Metadata'],
  ['post /encryption/rotate', 'Metadata'],
  ['post /state/default/a/lock', 'Metadata'],
  ['get /state/default/a', 'Metadata'],
  ['get /logs/default/a', 'None'],
  ['post /logs/default/a', 'None'],
  ['get /metrics', 'None'],
] as const) {
  test(`default policy: ${text} is ${level}`, () => assert.equal(levelOf(defaultPolicy, subject(text)), level))
}

const pods = { group: '', resources: ['pods'] }
for (const { name, rule, selected, others } of [
  { name: 'users', rule: { users: ['jane'] }, selected: [subject('get /x')], others: [subject('get /x', 'joe')] },
  { name: 'groups', rule: { userGroups: ['dev'] }, selected: [subject('get /x', 'joe', ['dev'])], others: [subject('get /x', 'dev')] },
  {
    name: 'a resource without its subresources',
    rule: { resources: [pods] },
    selected: [subject('get core/pods a/b')],
    others: [subject('get core/pods/status a/b'), subject('get apps/pods a/b'), subject('get /pods')],
  },
  {
    name: 'a subresource',
    rule: { resources: [{ group: '', resources: ['pods/log'] }] },
    selected: [subject('get core/pods/log a/b')],
    others: [subject('get core/pods a/b'), subject('get core/pods/exec a/b')],
  },
  {
    name: 'all subresources',
    rule: { resources: [{ group: '', resources: ['pods/*'] }] },
    selected: [subject('get core/pods/exec a/b')],
    others: [subject('get core/pods a/b'), subject('get core/nodes/exec a/b')],
  },
  {
    name: 'one subresource of all',
    rule: { resources: [{ group: '', resources: ['*/status'] }] },
    selected: [subject('patch core/pods/status a/b')],
    others: [subject('patch core/pods a/b')],
  },
  {
    name: 'a group',
    rule: { resources: [{ group: 'apps' }] },
    selected: [subject('get apps/deployments/scale a/b')],
    others: [subject('get core/pods a/b')],
  },
  {
    name: 'names',
    rule: { resources: [{ ...pods, resourceNames: ['b'] }] },
    selected: [subject('get core/pods a/b')],
    others: [subject('get core/pods a/c')],
  },
  {
    name: 'namespaces, the empty one for cluster-scoped objects',
    rule: { namespaces: ['a', ''] },
    selected: [subject('get core/pods a/b'), subject('get core/nodes /n')],
    others: [subject('get core/pods c/b'), subject('get /a')],
  },
  {
    name: 'paths',
    rule: { nonResourceURLs: ['/healthz', '/logs/*'] },
    selected: [subject('get /healthz'), subject('get /logs/a')],
    others: [subject('get /healthz/a'), subject('get core/pods a/b')],
  },
  { name: 'verbs', rule: { verbs: ['delete'] }, selected: [subject('delete core/pods a/b')], others: [subject('get core/pods a/b')] },
]) {
  test(`a rule selects ${name}`, () => {
    const policy = parsePolicy({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Request', ...rule }] })
    assert.deepEqual(
      [selected.map(each => levelOf(policy, each)), others.map(each => levelOf(policy, each))],
      [selected.map(() => 'Request'), others.map(() => 'None')],
    )
  })
}
