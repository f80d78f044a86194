/** Helm with a chart that has a CRD, hooks and 22 kinds: install, upgrade, rollback, uninstall. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { runProgram, skipWithout } from '../support/run-program.ts'
import { type ClientsServer, clientPath, isAgainstPeer, skipWithoutClient, startServerForClients } from './clients.ts'

const chart = join(import.meta.dirname, 'fixtures', 'chart')

describe('Helm', { skip: skipWithoutClient('helm') || skipWithout('kubectl') }, () => {
  let server: ClientsServer
  const run = async (program: string, args: readonly string[]): Promise<string> => {
    const home = server.directory
    const env = { KUBECONFIG: server.kubeconfig, HELM_CACHE_HOME: home, HELM_CONFIG_HOME: home, HELM_DATA_HOME: home, KUBECACHEDIR: home }
    const { code, stdout, stderr } = await runProgram(program, args, { env })
    equal(code, 0, `${program} ${args.join(' ')}: ${stderr}`)
    return stdout
  }
  const helm = (...args: string[]) => run(clientPath('helm'), [...args, '--namespace', 'harbor'])
  const read = (what: string, path: string) => run('kubectl', ['get', ...what.split(' '), '-n', 'harbor', '-o', `jsonpath={${path}}`])

  before(async () => {
    server = await startServerForClients()
  })
  after(() => server.close())

  test('install creates the CRD and then objects of every kind, and runs the hooks', async () => {
    match(await helm('install', 'quay', chart, '--create-namespace'), /STATUS: deployed\nREVISION: 1/)
    const kinds = (await helm('get', 'manifest', 'quay')).match(/^kind: (.*)$/gm)
    equal(new Set(kinds).size, 22)
    equal(await read('berth quay', '.spec.side'), 'port', 'a default of the CRD')
    equal(await read('deployment quay', '.spec.replicas'), '2')
    equal(await read('configmap quay-before', '.data.revision'), '1', 'the hook')
    equal(await read('configmap', '.items[?(@.metadata.name=="quay-gone")].metadata.name'), '', 'a hook that is deleted after it succeeded')
  })

  test('an upgrade writes only changed objects and deletes objects that the chart no longer has', async () => {
    const before = await read('service quay', '.metadata.resourceVersion')
    match(await helm('upgrade', 'quay', chart, '--set', 'replicas=3,greeting=hello,dock=false'), /REVISION: 2/)
    deepEqual([await read('deployment quay', '.spec.replicas'), await read('configmap quay', '.data.greeting')], ['3', 'hello'])
    equal(await read('service quay', '.metadata.resourceVersion'), before, 'an unchanged object is not written')
    equal(await read('berth', '.items[*].metadata.name'), '')
  })

  test('an upgrade that the server rejects changes nothing and reports the reason', async () => {
    const args = ['upgrade', 'quay', chart, '--namespace', 'harbor', '--set', 'replicas=-1']
    const { code, stderr } = await runProgram(clientPath('helm'), args, { env: { KUBECONFIG: server.kubeconfig } })
    equal(code, 1)
    match(stderr, /Deployment\.apps "quay" is invalid: spec\.replicas: Invalid value: -1/)
  })

  test('a rollback restores the first revision', async () => {
    match(await helm('rollback', 'quay', '1'), /Rollback was a success/)
    deepEqual([await read('deployment quay', '.spec.replicas'), await read('berth quay', '.spec.meters')], ['2', '40'])
    match(await helm('history', 'quay'), /Rollback to 1/)
    match(await helm('list'), /quay\s+harbor\s+4\s+.*deployed/)
  })

  test('uninstall deletes everything of the chart except the CRD', async () => {
    await helm('uninstall', 'quay')
    const kinds = `deploy,sts,ds,cronjob,svc,ing,netpol,pdb,hpa,sa,role,rolebinding,secret,berth${isAgainstPeer ? '' : ',pvc'}`
    equal(await read(kinds, '.items[?(@.metadata.name=="quay")].kind'), '')
    equal(await read('crd berths.harbor.test', '.spec.names.kind'), 'Berth')
  })
})
