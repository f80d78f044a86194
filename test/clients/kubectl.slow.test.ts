/** kubectl's verbs on built-in kinds. The tests of a file follow each other, as the commands of a user do. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type ClientsServer, isAgainstPeer, skipWithoutClient, startServerForClients } from './clients.ts'
import { type Kubectl, kubectlFor } from './kubectl.ts'

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

describe('kubectl with built-in kinds', { skip: skipWithoutClient('kubectl') }, () => {
  let server: ClientsServer
  let kubectl: Kubectl

  before(async () => {
    server = await startServerForClients()
    kubectl = kubectlFor(server)
    await kubectl.output('create namespace sea')
    await kubectl.output('config set-context --current --namespace sea')
  })
  after(() => server.close())

  test('apply, diff, apply again, server-side apply', async () => {
    equal(await kubectl.output('apply -f -', web(1)), 'deployment.apps/web created\n')
    equal(await kubectl.output('apply -f -', web(1)), 'deployment.apps/web unchanged\n')
    const diff = await kubectl.run('diff -f -', web(2))
    deepEqual([diff.code, /^-\s+replicas: 1\n\+\s+replicas: 2$/m.test(diff.stdout)], [1, true], diff.text)
    equal(await kubectl.output('apply -f -', web(2)), 'deployment.apps/web configured\n')
    equal(await kubectl.output('apply --server-side --force-conflicts -f -', web(3)), 'deployment.apps/web serverside-applied\n')
    const conflict = await kubectl.run('apply --server-side --field-manager other -f -', web(4))
    deepEqual([conflict.code, /conflict with "kubectl.*\.spec\.replicas/s.test(conflict.stderr)], [1, true], conflict.text)
  })

  test('get as a table, as names, by label, by field; describe', async () => {
    match(await kubectl.output('get deploy'), /^NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nweb +0\/3 +0 +0 +\d+s\n$/)
    match(await kubectl.output('get deploy -o wide'), /CONTAINERS +IMAGES +SELECTOR\n.* web +example\.test\/web:1 +app=web\n$/)
    equal(await kubectl.output('get all -l app=web -o name'), 'deployment.apps/web\n')
    equal(await kubectl.output('get deploy --field-selector metadata.name=other -o name'), '')
    match(
      await kubectl.output('describe deploy web'),
      /^Name: +web\nNamespace: +sea\n[\s\S]*StrategyType: +RollingUpdate\n[\s\S]*Image: +example\.test\/web:1/,
    )
  })

  test('patch, label, annotate, scale, set image, rollout', async () => {
    const name = 'deployment.apps/web'
    equal(await kubectl.output('patch deploy web -p {"spec":{"paused":true}}'), `${name} patched\n`)
    equal(await kubectl.output('patch deploy web --type json -p [{"op":"remove","path":"/spec/paused"}]'), `${name} patched\n`)
    equal(await kubectl.output('label deploy web tier=front'), `${name} labeled\n`)
    equal(await kubectl.output('annotate deploy web note=one'), `${name} annotated\n`)
    equal(await kubectl.output('scale deploy web --replicas 5'), `${name} scaled\n`)
    equal(await kubectl.output('set image deploy/web web=example.test/web:2'), `${name} image updated\n`)
    equal(await kubectl.output('rollout restart deploy/web'), `${name} restarted\n`)
    equal(
      await kubectl.output('get deploy web -o jsonpath={.spec.replicas}/{.metadata.labels.tier}/{.metadata.annotations.note}'),
      '5/front/one',
    )
    match(await kubectl.output('patch deploy web --subresource status -p {"status":{"readyReplicas":5,"replicas":5}}'), /patched/)
    match(await kubectl.output('get deploy'), /^web +5\/5 /m)
  })

  test('wait for a condition, for a field and for deletion', async () => {
    await kubectl.output('create configmap waited')
    const deleted = kubectl.output('wait --for=delete configmap/waited --timeout=20s')
    await kubectl.output('delete configmap waited')
    // kubectl prints nothing about an object that was deleted before it looked.
    match(await deleted, /^(configmap\/waited condition met\n)?$/)
    equal(await kubectl.output('wait --for=jsonpath={.spec.replicas}=5 deploy/web --timeout=20s'), 'deployment.apps/web condition met\n')
    equal(await kubectl.output('wait --for=jsonpath={.status.phase}=Active namespace/sea --timeout=20s'), 'namespace/sea condition met\n')
  })

  test('the Service kubernetes and its endpoints', async () => {
    match(await kubectl.output('get service kubernetes -n default'), /^kubernetes +ClusterIP +10\.96\.0\.1 +<none> +443\/TCP +\d+s$/m)
    const port = new URL(server.serviceUrl).port
    match(await kubectl.output('get endpointslices kubernetes -n default'), new RegExp(`^kubernetes +IPv4 +${port} +[0-9.]+ +\\d+s$`, 'm'))
    match(await kubectl.output('get svc -A -o wide'), /^default +kubernetes /m)
  })

  test('creates of built-in kinds, which kubectl sends as protobuf', async () => {
    equal(await kubectl.output('create namespace harbor'), 'namespace/harbor created\n')
    equal(await kubectl.output('create configmap made -n harbor --from-literal=a=b'), 'configmap/made created\n')
    equal(await kubectl.output('create secret generic made -n harbor --from-literal=a=b'), 'secret/made created\n')
    equal(await kubectl.output('get secret made -n harbor -o jsonpath={.data.a}'), 'Yg==')
    if (!isAgainstPeer) match(await kubectl.output('delete namespace harbor --timeout=20s'), /^namespace "harbor" deleted/)
  })

  test('explain and api-resources', async () => {
    match(
      await kubectl.output('explain deployment.spec.strategy'),
      /^GROUP: +apps\nKIND: +Deployment\nVERSION: +v1\n\nFIELD: strategy <DeploymentStrategy>[\s\S]*rollingUpdate/,
    )
    match(await kubectl.output('explain pod.spec.containers --recursive'), /livenessProbe\t<Probe>/)
    match(await kubectl.output('api-resources --api-group apps'), /^deployments +deploy +apps\/v1 +true +Deployment$/m)
    match(await kubectl.output('api-versions'), /^rbac\.authorization\.k8s\.io\/v1$/m)
  })

  test('create token, auth can-i, auth whoami', async () => {
    await kubectl.output('create serviceaccount robot')
    const token = (await kubectl.output('create token robot --duration=20m')).trim()
    await kubectl.output('create role reader --verb get,list --resource configmaps')
    await kubectl.output('create rolebinding robot --role reader --serviceaccount sea:robot')
    equal(await kubectl.output('auth can-i delete pods'), 'yes\n')
    if (!isAgainstPeer) match(await kubectl.output('auth whoami'), /Username +oarlock:admin/)
    const asRobot = `--token ${token}`
    match(await kubectl.output(`auth whoami ${asRobot}`), /Username +system:serviceaccount:sea:robot\n/)
    equal(await kubectl.output(`auth can-i list configmaps ${asRobot}`), 'yes\n')
    equal((await kubectl.run(`auth can-i delete configmaps ${asRobot}`)).stdout, 'no\n')
    match(await kubectl.output(`auth can-i --list ${asRobot}`), /^configmaps +\[\] +\[\] +\[get list\]$/m)
    equal(await kubectl.output(`get configmaps -o name ${asRobot}`), await kubectl.output('get configmaps -o name'))
    const rejected = await kubectl.run(`get secrets ${asRobot}`)
    match(
      rejected.stderr,
      /secrets is forbidden: User "system:serviceaccount:sea:robot" cannot list resource "secrets" in API group "" in the namespace "sea"/,
    )
  })

  test('rejects impersonation', { skip: isAgainstPeer && 'kube-apiserver supports impersonation' }, async () => {
    const { code, stderr } = await kubectl.run('get pods --as=bob')
    equal(code, 1)
    match(stderr, /impersonation is not supported/)
  })

  test('delete with each cascade', { skip: isAgainstPeer && 'kube-apiserver alone has no garbage collector' }, async () => {
    const owned = async (owner: string, flag: string) => {
      await kubectl.output(`create configmap ${owner}`)
      const uid = await kubectl.output(`get configmap ${owner} -o jsonpath={.metadata.uid}`)
      await kubectl.output('apply -f -', child(`${owner}-child`, owner, uid))
      match(await kubectl.output(`delete configmap ${owner} --cascade=${flag} --timeout=20s`), /deleted/)
    }
    await owned('orphaning', 'orphan')
    equal(await kubectl.output('get configmap orphaning-child -o jsonpath={.metadata.ownerReferences}'), '')
    await owned('front', 'foreground')
    equal(await kubectl.output('get configmap front-child --ignore-not-found'), '', 'deleted before its owner')
    await owned('back', 'background')
    await kubectl.output('wait --for=delete configmap/back-child --timeout=20s')
    match(await kubectl.output('delete namespace sea --timeout=30s'), /deleted/)
  })
})
