import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { type OidcClaims, oidcUser } from './oidc-user.ts'

const issuer = 'https://issuer.example'
const claims = { sub: '42', email: 'ann@example.com', email_verified: true, groups: ['dev', 'ops'], team: 'one' }

for (const [title, options, user] of [
  ['the subject has the issuer as prefix, so that users of two issuers differ', {}, { name: `${issuer}#42`, groups: [] }],
  ['the prefix - is none', { usernamePrefix: '-' }, { name: '42', groups: [] }],
  ['an address of mail has no prefix by default', { usernameClaim: 'email' }, { name: 'ann@example.com', groups: [] }],
  [
    'groups have their prefix',
    { usernamePrefix: 'oidc:', groupsClaim: 'groups', groupsPrefix: 'oidc:' },
    { name: 'oidc:42', groups: ['oidc:dev', 'oidc:ops'] },
  ],
  ['a claim with one group is a text', { usernamePrefix: '-', groupsClaim: 'team' }, { name: '42', groups: ['one'] }],
  ['a missing claim of groups is no group', { usernamePrefix: '-', groupsClaim: 'roles' }, { name: '42', groups: [] }],
  [
    'groups that are not allowed are left out',
    { usernamePrefix: '-', groupsClaim: 'groups', allowedGroups: ['ops'] },
    { name: '42', groups: ['ops'] },
  ],
] satisfies [string, OidcClaims, object][])
  test(title, () => deepEqual(oidcUser(issuer, claims, options), user))

test('no provider gives users or groups of Kubernetes itself', () => {
  const evil = { sub: 'system:admin', groups: ['system:masters', 'dev'] }
  throws(() => oidcUser(issuer, evil, { usernamePrefix: '-' }), /the claim sub begins with "system:"/)
  throws(() => oidcUser(issuer, { sub: 'admin' }, { usernamePrefix: 'system:' }), /begins with "system:"/)
  deepEqual(oidcUser(issuer, evil, { groupsClaim: 'groups' }).groups, ['dev'])
  deepEqual(oidcUser(issuer, { sub: 'a', groups: ['masters'] }, { groupsClaim: 'groups', groupsPrefix: 'system:' }).groups, [])
})

test('a user without the claim, and one whose address is not verified, is rejected', () => {
  throws(() => oidcUser(issuer, {}, {}), /the ID token has no claim sub/)
  throws(() => oidcUser(issuer, { sub: 7 }, {}), /the ID token has no claim sub/)
  throws(() => oidcUser(issuer, { ...claims, email_verified: false }, { usernameClaim: 'email' }), /the claim email is not verified/)
})

test('no name arrives or looks like another one: white space at its ends, control, invisible and reversing characters, half a character', () => {
  for (const sub of [
    ' system:admin',
    '\tsystem:admin',
    '\u00a0system:admin',
    'admin ',
    'admin\n',
    'a\r\nImpersonate-Group: ops',
    'a\u0000',
    'a\ud800',
    'admin\u200b',
    'a\u202eb',
    'a\u2028b',
    'admin\u3164',
    'admin\u{e0041}',
  ])
    throws(
      () => oidcUser(issuer, { sub }, { usernamePrefix: '-' }),
      /the claim sub is not a name without control, invisible or reversing characters and without spaces at its ends/,
    )
  const groups = [' system:masters', 'ops ', 'a\nb', 'ops\u200b', 'team a', 'größe', '日本']
  deepEqual(oidcUser(issuer, { sub: 'a', groups }, { groupsClaim: 'groups' }).groups, ['team a', 'größe', '日本'])
})
