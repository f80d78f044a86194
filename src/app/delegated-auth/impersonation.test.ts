import { deepEqual, rejects } from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import type { AccessReviewer } from './access-reviewer.ts'
import { impersonateByAccessReview, isImpersonation } from './impersonation.ts'

/** Allows what is listed, as `RESOURCE NAME`. */
const allowing = (...rights: string[]) =>
  impersonateByAccessReview({
    isAllowed: async (_user: unknown, attributes: { verb: string; group?: string; resource: string; namespace?: string; name?: string }) =>
      attributes.verb === 'impersonate' && attributes.group === '' && rights.includes(`${attributes.resource} ${attributes.name}`),
  } as unknown as AccessReviewer)
const request = (headersDistinct: Record<string, string[]>) =>
  ({
    headersDistinct,
    headers: Object.fromEntries(Object.entries(headersDistinct).map(([name, [value]]) => [name, value])),
  }) as unknown as IncomingMessage
const console_ = { name: 'system:serviceaccount:oarlock-system:oarlock-console-server', groups: [] }

for (const [title, headers, expected] of [
  [
    'a user has the groups that are sent',
    { 'impersonate-user': ['ann'], 'impersonate-group': ['dev', 'ops'] },
    ['ann', 'dev', 'ops', 'system:authenticated'],
  ],
  ['a user without groups is authenticated only', { 'impersonate-user': ['ann'] }, ['ann', 'system:authenticated']],
  [
    'names that are not ASCII are UTF-8, of which Node makes one character per byte',
    { 'impersonate-user': ['jos\xc3\xa9'], 'impersonate-group': ['\xe6\x97\xa5\xe6\x9c\xac', '\xef\xbb\xbfops'] },
    ['josé', '日本', '\ufeffops', 'system:authenticated'],
  ],
  [
    'a ServiceAccount has the groups of its namespace',
    { 'impersonate-user': ['system:serviceaccount:shop:ci'] },
    ['system:serviceaccount:shop:ci', 'system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
  ],
] as const)
  test(title, async () => {
    const { name, groups } = await allowing(
      'users ann',
      'groups dev',
      'groups ops',
      'users josé',
      'groups 日本',
      'groups \ufeffops',
      'serviceaccounts ci',
    )(console_, request(headers as never))
    deepEqual([name, ...groups], expected)
  })

for (const [title, headers, message] of [
  ['a user who may not be impersonated', { 'impersonate-user': ['bob'] }, /users\. "bob" is forbidden: .* cannot impersonate/],
  [
    'one group that may not be',
    { 'impersonate-user': ['ann'], 'impersonate-group': ['dev', 'system:masters'] },
    /"system:masters" is forbidden/,
  ],
  [
    'a ServiceAccount with the right on users only',
    { 'impersonate-user': ['system:serviceaccount:shop:ann'] },
    /serviceaccounts\. "ann" is forbidden/,
  ],
  ['groups without a user', { 'impersonate-group': ['dev'] }, /impersonate-user is missing/],
  ['extra attributes', { 'impersonate-user': ['ann'], 'impersonate-extra-scopes': ['all'] }, /impersonate-extra-scopes is not supported/],
  ['a UID', { 'impersonate-user': ['ann'], 'impersonate-uid': ['1'] }, /impersonate-uid is not supported/],
] as const)
  test(`rejects ${title}`, async () => {
    const impersonation = request(headers as never)
    deepEqual(isImpersonation(impersonation), true)
    await rejects(
      allowing('users ann', 'groups dev')(console_, impersonation),
      (error: Error & { code?: number }) => error.code === 403 && message.test(error.message),
    )
  })

test('rejects a name that is not UTF-8: two of them must not become one', async () => {
  await rejects(allowing()(console_, request({ 'impersonate-user': ['jos\xe9'] })), {
    code: 400,
    message: /the impersonated name "josé" is not UTF-8/,
  })
})
