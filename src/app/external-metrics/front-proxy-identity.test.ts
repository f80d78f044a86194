import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { frontProxyConfig, frontProxyUser } from './front-proxy-identity.ts'

/** As kube-apiserver 1.36 writes it. */
const data = {
  'client-ca-file': 'PEM of another authority',
  'requestheader-client-ca-file': 'PEM',
  'requestheader-allowed-names': '["front-proxy-client"]',
  'requestheader-username-headers': '["X-Remote-User"]',
  'requestheader-group-headers': '["X-Remote-Group"]',
  'requestheader-uid-headers': '["X-Remote-Uid"]',
  'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
}
const config = frontProxyConfig(data)!
const named = { 'x-remote-user': ['ada'] }

test('reads the settings of kube-apiserver, with headers in lower case', () => {
  deepEqual(config, {
    clientCa: 'PEM',
    allowedNames: ['front-proxy-client'],
    userHeaders: ['x-remote-user'],
    groupHeaders: ['x-remote-group'],
    uidHeaders: ['x-remote-uid'],
    extraPrefixes: ['x-remote-extra-'],
  })
})

test('there are none without a requestheader CA, also with the CA of users', () => {
  const without: (Record<string, string> | undefined)[] = [
    undefined,
    {},
    { 'client-ca-file': 'PEM' },
    { ...data, 'requestheader-client-ca-file': '\n' },
  ]
  for (const each of without) equal(frontProxyConfig(each), undefined)
})

for (const text of ['front-proxy-client', '"a"', '[1]', '{'])
  test(`rejects allowed names ${text}`, () => {
    throws(() => frontProxyConfig({ ...data, 'requestheader-allowed-names': text }), {
      message: /^requestheader-allowed-names of ConfigMap .* must be a JSON list of strings$/,
    })
  })

test('the user has the groups, uid and extra fields of the headers, and a group may contain a comma', () => {
  const headers = {
    ...named,
    'x-remote-group': ['dev, ops', 'system:authenticated'],
    'x-remote-uid': ['7'],
    'x-remote-extra-authentication.kubernetes.io%2fpod-name': ['p'],
    'x-remote-extra-scopes': ['a', 'b'],
    'x-remote-extra-': ['ignored'],
    authorization: ['Bearer x'],
  }
  const user = frontProxyUser(config, 'front-proxy-client', headers)
  deepEqual(
    { ...user, extra: { ...user?.extra } },
    {
      name: 'ada',
      groups: ['dev, ops', 'system:authenticated'],
      uid: '7',
      extra: { 'authentication.kubernetes.io/pod-name': ['p'], scopes: ['a', 'b'] },
    },
  )
})

for (const [name, of, commonName, headers] of [
  ['no verified certificate', config, undefined, named],
  ['a certificate with another name', config, 'kubelet', named],
  ['no user', config, 'front-proxy-client', { 'x-remote-group': ['system:masters'] }],
  ['an empty user', config, 'front-proxy-client', { 'x-remote-user': [''] }],
] as const)
  test(`there is no user with ${name}`, () => equal(frontProxyUser(of, commonName, headers), undefined))

test('any name is allowed if none is listed', () => {
  const { 'requestheader-allowed-names': _, ...rest } = data
  deepEqual(frontProxyUser(frontProxyConfig(rest)!, 'kubelet', named), { name: 'ada', groups: [] })
})
