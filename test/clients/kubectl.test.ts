/** kubectl's verbs on what the embedded server serves, one after the other as a user goes. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { runProgram } from '../support/run-program.ts'
import { type ClientsServer, isAgainstPeer, skipWithoutClient, startServerForClients } from './clients.ts'

const web = (replicas: number) => `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.test/web:1, ports: [{containerPort: 80}]}]}
`
const child = (name: string, owner: string, uid: string) => `apiVersion: v1
kind: ConfigMap
metadata:
  name: ${name}
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: ${owner}, uid: ${uid}, blockOwnerDeletion: true}]
`

describe('kubectl', { skip: skipWithoutClient('kubectl') }, () => {
  let server: ClientsServer
  const run = (args: string, input = '') => {
    const env = { KUBECONFIG: server.kubeconfig, KUBECACHEDIR: join(server.directory, 'cache'), KUBECTL_EXTERNAL_DIFF: 'diff -u' }
    return runProgram('kubectl', args.split(' '), { input, env })
  }
  const says = async (args: string, input = '') => {
    const { code, stdout, stderr } = await run(args, input)
    equal(code, 0, `kubectl ${args}: ${stderr}${stdout}`)
    return stdout
  }

  before(async () => {
    server = await startServerForClients()
    await says('create namespace sea')
    await says('config set-context --current --namespace sea')
  })
  after(() => server.close())

  test('apply, diff, apply again, server-side apply', async () => {
    equal(await says('apply -f -', web(1)), 'deployment.apps/web created\n')
    equal(await says('apply -f -', web(1)), 'deployment.apps/web unchanged\n')
    const diff = await run('diff -f -', web(2))
    deepEqual([diff.code, /^-\s+replicas: 1\n\+\s+replicas: 2$/m.test(diff.stdout)], [1, true], diff.text)
    equal(await says('apply -f -', web(2)), 'deployment.apps/web configured\n')
    equal(await says('apply --server-side --force-conflicts -f -', web(3)), 'deployment.apps/web serverside-applied\n')
    const conflict = await run('apply --server-side --field-manager other -f -', web(4))
    deepEqual([conflict.code, /conflict with "kubectl.*\.spec\.replicas/s.test(conflict.stderr)], [1, true], conflict.text)
  })

  test('get as a table, as names, by label, by field; describe', async () => {
    match(await says('get deploy'), /^NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nweb +0\/3 +0 +0 +\d+s\n$/)
    match(await says('get deploy -o wide'), /CONTAINERS +IMAGES +SELECTOR\n.* web +example\.test\/web:1 +app=web\n$/)
    equal(await says('get all -l app=web -o name'), 'deployment.apps/web\n')
    equal(await says('get deploy --field-selector metadata.name=other -o name'), '')
    match(
      await says('describe deploy web'),
      /^Name: +web\nNamespace: +sea\n[\s\S]*StrategyType: +RollingUpdate\n[\s\S]*Image: +example\.test\/web:1/,
    )
  })

  test('patch, label, annotate, scale, set image, rollout', async () => {
    const name = 'deployment.apps/web'
    equal(await says('patch deploy web -p {"spec":{"paused":true}}'), `${name} patched\n`)
    equal(await says('patch deploy web --type json -p [{"op":"remove","path":"/spec/paused"}]'), `${name} patched\n`)
    equal(await says('label deploy web tier=front'), `${name} labeled\n`)
    equal(await says('annotate deploy web note=one'), `${name} annotated\n`)
    equal(await says('scale deploy web --replicas 5'), `${name} scaled\n`)
    equal(await says('set image deploy/web web=example.test/web:2'), `${name} image updated\n`)
    equal(await says('rollout restart deploy/web'), `${name} restarted\n`)
    equal(await says('get deploy web -o jsonpath={.spec.replicas}/{.metadata.labels.tier}/{.metadata.annotations.note}'), '5/front/one')
    match(await says('patch deploy web --subresource status -p {"status":{"readyReplicas":5,"replicas":5}}'), /patched/)
    match(await says('get deploy'), /^web +5\/5 /m)
  })

  test('wait for a condition, for a field and for the end', async () => {
    await says('create configmap waited')
    const gone = says('wait --for=delete configmap/waited --timeout=20s')
    await says('delete configmap waited')
    // It says nothing of what was gone before it looked.
    match(await gone, /^(configmap\/waited condition met\n)?$/)
    equal(await says('wait --for=jsonpath={.spec.replicas}=5 deploy/web --timeout=20s'), 'deployment.apps/web condition met\n')
    equal(await says('wait --for=jsonpath={.status.phase}=Active namespace/sea --timeout=20s'), 'namespace/sea condition met\n')
  })

  test('explain and api-resources', async () => {
    match(
      await says('explain deployment.spec.strategy'),
      /^GROUP: +apps\nKIND: +Deployment\nVERSION: +v1\n\nFIELD: strategy <DeploymentStrategy>[\s\S]*rollingUpdate/,
    )
    match(await says('explain pod.spec.containers --recursive'), /livenessProbe\t<Probe>/)
    match(await says('api-resources --api-group apps'), /^deployments +deploy +apps\/v1 +true +Deployment$/m)
    match(await says('api-versions'), /^rbac\.authorization\.k8s\.io\/v1$/m)
  })

  test('create token, auth can-i, auth whoami', async () => {
    await says('create serviceaccount robot')
    const token = (await says('create token robot')).trim()
    await says('create role reader --verb get,list --resource configmaps')
    await says('create rolebinding robot --role reader --serviceaccount sea:robot')
    equal(await says('auth can-i delete pods'), 'yes\n')
    const asRobot = `--token ${token}`
    match(await says(`auth whoami ${asRobot}`), /Username +system:serviceaccount:sea:robot\n/)
    equal(await says(`auth can-i list configmaps ${asRobot}`), 'yes\n')
    equal((await run(`auth can-i delete configmaps ${asRobot}`)).stdout, 'no\n')
    match(await says(`auth can-i --list ${asRobot}`), /^configmaps +\[\] +\[\] +\[get list\]$/m)
    equal(await says(`get configmaps -o name ${asRobot}`), await says('get configmaps -o name'))
    const refused = await run(`get secrets ${asRobot}`)
    match(
      refused.stderr,
      /secrets is forbidden: User "system:serviceaccount:sea:robot" cannot list resource "secrets" in API group "" in the namespace "sea"/,
    )
  })

  test('delete with each cascade', { skip: isAgainstPeer && 'nothing collects garbage there' }, async () => {
    const owned = async (owner: string, flag: string) => {
      await says(`create configmap ${owner}`)
      const uid = await says(`get configmap ${owner} -o jsonpath={.metadata.uid}`)
      await says('apply -f -', child(`${owner}-child`, owner, uid))
      match(await says(`delete configmap ${owner} --cascade=${flag} --timeout=20s`), /deleted/)
    }
    await owned('orphaning', 'orphan')
    equal(await says('get configmap orphaning-child -o jsonpath={.metadata.ownerReferences}'), '')
    await owned('front', 'foreground')
    equal(await says('get configmap front-child --ignore-not-found'), '', 'gone before its owner')
    await owned('back', 'background')
    await says('wait --for=delete configmap/back-child --timeout=20s')
    match(await says('delete namespace sea --timeout=30s'), /deleted/)
  })
})
