import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { type KubeconfigFile, resolveKubeconfig } from './kubeconfig.ts'

const b64 = (text: string) => Buffer.from(text).toString('base64')
const file = (content: unknown, path = '/home/ann/.kube/config'): KubeconfigFile => ({
  path,
  directory: path.slice(0, path.lastIndexOf('/')),
  content,
})
const config = (user: object, cluster: object = {}, context: object = {}) => ({
  'current-context': 'dev',
  contexts: [{ name: 'dev', context: { cluster: 'c', user: 'u', ...context } }],
  clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443/', ...cluster } }],
  users: [{ name: 'u', user }],
})

const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './bin/login', args: ['token', 7], env: [{ name: 'A', value: 'b' }] }
for (const { name, user, cluster, context, want } of [
  {
    name: 'a token',
    user: { token: 't' },
    want: { credentials: { kind: 'token', token: 't' }, server: 'https://10.0.0.1:6443', defaultNamespace: 'default' },
  },
  {
    name: 'a token file takes precedence over a token, relative to the kubeconfig',
    user: { token: 't', tokenFile: 'tok' },
    want: { credentials: { kind: 'token-file', path: '/home/ann/.kube/tok' } },
  },
  {
    name: 'basic authentication',
    user: { username: 'a', password: 'p' },
    want: { credentials: { kind: 'basic', username: 'a', password: 'p' } },
  },
  {
    name: 'certificate data takes precedence over files',
    user: { 'client-certificate-data': b64('CERT'), 'client-certificate': 'no', 'client-key': 'key.pem' },
    cluster: { 'certificate-authority': '/etc/ca.pem' },
    want: {
      clientCertificate: { kind: 'text', text: 'CERT' },
      clientKey: { kind: 'file', path: '/home/ann/.kube/key.pem' },
      ca: { kind: 'file', path: '/etc/ca.pem' },
    },
  },
  {
    name: 'TLS options, proxy and the namespace of the context',
    user: {},
    cluster: { 'insecure-skip-tls-verify': true, 'tls-server-name': 'api', 'proxy-url': 'http://proxy:3128' },
    context: { namespace: 'blue' },
    want: { insecureSkipTlsVerify: true, tlsServerName: 'api', proxyUrl: 'http://proxy:3128', defaultNamespace: 'blue' },
  },
  {
    name: 'an exec plugin',
    user: { exec },
    want: {
      credentials: {
        kind: 'exec',
        plugin: { ...exec, command: '/home/ann/.kube/bin/login', args: ['token', '7'], installHint: undefined, provideClusterInfo: false },
      },
    },
  },
  { name: 'impersonation', user: { as: 'eve', 'as-groups': ['g'] }, want: { impersonate: { user: 'eve', groups: ['g'], uid: undefined } } },
  {
    name: 'a server without a scheme uses http, as in kubectl',
    user: {},
    cluster: { server: 'localhost:8080' },
    want: { server: 'http://localhost:8080' },
  },
  {
    name: 'a server with a path',
    user: {},
    cluster: { server: 'https://rancher.x/k8s/clusters/c-1/' },
    want: { server: 'https://rancher.x/k8s/clusters/c-1' },
  },
]) {
  test(`kubeconfig: ${name}`, () => {
    const access = resolveKubeconfig([file(config(user, cluster, context))]) as unknown as Record<string, unknown>
    deepEqual(Object.fromEntries(Object.keys(want).map(key => [key, access[key]])), want)
  })
}

test('several files are merged as in kubectl: the first definition wins', () => {
  const first = file({ ...config({ token: 'one' }), contexts: undefined }, '/a/one')
  const second = file({ ...config({ token: 'two' }, { server: 'https://two' }, { namespace: 'n' }), 'current-context': 'other' }, '/b/two')
  const access = resolveKubeconfig([first, file(null, '/c/empty'), second])
  deepEqual([access.server, access.defaultNamespace, access.credentials], ['https://10.0.0.1:6443', 'n', { kind: 'token', token: 'one' }])
  equal(access.source, 'context "dev" of /b/two')
})

for (const { name, content, context, want } of [
  { name: 'no current context', content: { contexts: [] }, want: /has no current-context: set one/ },
  { name: 'an unknown context', content: config({}), context: 'prod', want: /has no context "prod": available are dev/ },
  { name: 'a missing cluster', content: { ...config({}), clusters: [] }, want: /has no cluster "c": available are none/ },
  { name: 'a missing user', content: { ...config({}), users: [] }, want: /has no user "u"/ },
  { name: 'no server', content: config({}, { server: '' }), want: /clusters\[c\]\.cluster\.server is missing/ },
  {
    name: 'a server that is not a URL',
    content: config({}, { server: 'https://' }),
    want: /clusters\[c\]\.cluster\.server "https:\/\/" must be a URL/,
  },
  { name: 'a password in the address', content: config({}, { server: 'https://a:s3cret@x' }), want: /must not contain a user or password/ },
  { name: 'an auth-provider', content: config({ 'auth-provider': { name: 'gcp' } }), want: /auth-provider was removed/ },
  {
    name: 'an old exec version',
    content: config({ exec: { ...exec, apiVersion: 'v1alpha1' } }),
    want: /exec\.apiVersion "v1alpha1" must be one of/,
  },
  {
    name: 'a token that YAML parses as a number, without quoting it',
    content: config({ token: 123456 }),
    want: /users\[u\]\.user\.token must be a string, got a number: put it in quotes$/,
  },
  { name: 'a list', content: [], want: /must be a YAML mapping, got list/ },
]) {
  test(`rejects a kubeconfig with ${name}`, () => {
    throws(
      () => resolveKubeconfig([file(content)], context),
      (error: Error) =>
        want.test(error.message) && error.message.includes('/home/ann/.kube/config') && !/s3cret|123456/.test(error.message),
    )
  })
}
