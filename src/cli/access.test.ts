import { equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { dataDirectory, findKubeconfig, noKubeconfigError } from './access.ts'

const environment = (env: Record<string, string>, present: string[], checkout: string | undefined = '/checkout') => ({
  env,
  cwd: '/cwd',
  checkout,
  exists: (path: string) => present.includes(path),
})

for (const [name, option, env, checkout, want] of [
  ['--data takes precedence', 'd', { OARLOCK_DATA: '/env' }, '/checkout', '/cwd/d'],
  ['OARLOCK_DATA comes next', undefined, { OARLOCK_DATA: '/env' }, '/checkout', '/env'],
  ['an empty OARLOCK_DATA is ignored', undefined, { OARLOCK_DATA: '' }, '/checkout', '/checkout/.oarlock'],
  ['the checkout comes next', undefined, {}, '/checkout', '/checkout/.oarlock'],
  ['the working directory comes last', undefined, {}, undefined, '/cwd/.oarlock'],
] as const) {
  test(`data directory: ${name}`, () => equal(dataDirectory(option, { ...environment(env, []), checkout }), want))
}

const all = ['/env/kubeconfig', '/cwd/.oarlock/kubeconfig', '/checkout/.oarlock/kubeconfig']
for (const [name, option, env, present, want] of [
  ['--kubeconfig takes precedence', 'k', { KUBECONFIG: '/k8s' }, all, '/cwd/k'],
  ['KUBECONFIG is left to the client', undefined, { KUBECONFIG: '/k8s' }, all, undefined],
  ['OARLOCK_DATA comes next', undefined, { OARLOCK_DATA: '/env' }, all, '/env/kubeconfig'],
  ['.oarlock in the working directory comes next', undefined, {}, all, '/cwd/.oarlock/kubeconfig'],
  ['.oarlock of the checkout comes next', undefined, {}, all.slice(2), '/checkout/.oarlock/kubeconfig'],
  ['the search of kubectl comes last', undefined, {}, [], undefined],
] as const) {
  test(`kubeconfig: ${name}`, () => equal(findKubeconfig(option, environment(env, [...present])), want))
}

test('the error without a kubeconfig lists every place that was searched, and a hint', () => {
  const error = noKubeconfigError(environment({}, []))
  match(error.message, /KUBECONFIG is not set.*: \/cwd\/\.oarlock\/kubeconfig, \/checkout\/\.oarlock\/kubeconfig, .*\.kube\/config$/)
  match(error.hint ?? '', /OARLOCK_DATA/)
})
