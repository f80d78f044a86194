import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { dataDirectory, findKubeconfig } from './access.ts'

const surroundings = (env: Record<string, string>, present: string[], checkout: string | undefined = '/checkout') => ({
  env,
  cwd: '/cwd',
  checkout,
  exists: (path: string) => present.includes(path),
})

for (const [name, option, env, checkout, want] of [
  ['--data wins', 'd', { OARLOCK_DATA: '/env' }, '/checkout', '/cwd/d'],
  ['then OARLOCK_DATA', undefined, { OARLOCK_DATA: '/env' }, '/checkout', '/env'],
  ['an empty OARLOCK_DATA is none', undefined, { OARLOCK_DATA: '' }, '/checkout', '/checkout/.oarlock'],
  ['then the checkout', undefined, {}, '/checkout', '/checkout/.oarlock'],
  ['then the working directory', undefined, {}, undefined, '/cwd/.oarlock'],
] as const) {
  test(`data directory: ${name}`, () => equal(dataDirectory(option, { ...surroundings(env, []), checkout }), want))
}

const all = ['/env/kubeconfig', '/cwd/.oarlock/kubeconfig', '/checkout/.oarlock/kubeconfig']
for (const [name, option, env, present, want] of [
  ['--kubeconfig wins', 'k', { KUBECONFIG: '/k8s' }, all, '/cwd/k'],
  ['KUBECONFIG is left to the client', undefined, { KUBECONFIG: '/k8s' }, all, undefined],
  ['then OARLOCK_DATA', undefined, { OARLOCK_DATA: '/env' }, all, '/env/kubeconfig'],
  ['then .oarlock here', undefined, {}, all, '/cwd/.oarlock/kubeconfig'],
  ['then .oarlock of the checkout', undefined, {}, all.slice(2), '/checkout/.oarlock/kubeconfig'],
  ['then what kubectl would use', undefined, {}, [], undefined],
] as const) {
  test(`kubeconfig: ${name}`, () => equal(findKubeconfig(option, surroundings(env, [...present])), want))
}
