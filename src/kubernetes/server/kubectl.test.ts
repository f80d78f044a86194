import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import Type from 'typebox'
import { skipWithout } from '../../../test/support/run-program.ts'
import { defineResource } from '../object/index.ts'
import { startTestServer, type TestServer } from './server.testing.ts'

const run = promisify(execFile)

const boat = defineResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Boat',
  plural: 'boats',
  scope: 'Namespaced',
  description: 'Boat floats.',
  shortNames: ['bt'],
  categories: ['fleet'],
  spec: Type.Object({ color: Type.String({ description: 'What it is painted with.' }), oars: Type.Optional(Type.Integer({ default: 2 })) }),
  status: Type.Object({ phase: Type.Optional(Type.String()) }),
  printerColumns: [{ name: 'Color', jsonPath: '.spec.color' }],
})
const manifest = (color: string) =>
  `apiVersion: example.com/v1\nkind: Boat\nmetadata: {name: one, namespace: default}\nspec: {color: ${color}}\n`

describe('the real kubectl', { skip: skipWithout('kubectl') }, () => {
  let server: TestServer
  before(async () => {
    server = await startTestServer()
    await kubectl('apply', JSON.stringify(boat.toCrd()), '-f', '-')
    await kubectl('wait', '', '--for=condition=Established', 'crd/boats.example.com', '--timeout=5s')
  })
  after(() => server.close())

  const kubectl = async (verb: string, input: string, ...args: string[]): Promise<string> => {
    const cache = join(server.dataDir, 'kubectl-cache')
    const call = run('kubectl', ['--kubeconfig', server.server.kubeconfigPath, '--cache-dir', cache, verb, ...args])
    call.child.stdin?.end(input)
    const { stdout } = await call
    return stdout.trim()
  }

  test('apply, get, describe, label, patch, delete of a custom resource', async () => {
    assert.equal(await kubectl('apply', manifest('red'), '-f', '-'), 'boat.example.com/one created')
    assert.equal(await kubectl('apply', manifest('red'), '-f', '-'), 'boat.example.com/one unchanged')
    assert.equal(await kubectl('apply', manifest('blue'), '-f', '-'), 'boat.example.com/one configured')
    assert.match(await kubectl('get', '', 'bt'), /^NAME +COLOR\none +blue$/)
    assert.match(await kubectl('get', '', 'fleet', '-A', '-o', 'wide'), /default +one +blue/)
    assert.match(await kubectl('describe', '', 'bt', 'one'), /Color: +blue/)
    assert.equal(await kubectl('label', '', 'bt', 'one', 'a=b'), 'boat.example.com/one labeled')
    assert.equal(await kubectl('annotate', '', 'bt', 'one', 'a=b'), 'boat.example.com/one annotated')
    assert.equal(await kubectl('patch', '', 'bt', 'one', '--type=merge', '-p', '{"spec":{"oars":4}}'), 'boat.example.com/one patched')
    await kubectl('patch', '', 'bt', 'one', '--subresource=status', '--type=merge', '-p', '{"status":{"phase":"Afloat"}}')
    assert.equal(
      await kubectl('wait', '', '--for=jsonpath={.status.phase}=Afloat', 'bt/one', '--timeout=5s'),
      'boat.example.com/one condition met',
    )
    assert.equal(await kubectl('delete', '', 'bt', 'one'), 'boat.example.com "one" deleted')
  })

  test('apply --server-side: conflicts are named, and can be forced', async () => {
    const apply = (color: string, manager: string, ...more: string[]) =>
      kubectl('apply', manifest(color), '--server-side', `--field-manager=${manager}`, ...more, '-f', '-')
    assert.equal(await apply('red', 'one'), 'boat.example.com/one serverside-applied')
    await assert.rejects(apply('green', 'two'), /conflict with "one": \.spec\.color/)
    assert.equal(await apply('green', 'two', '--force-conflicts'), 'boat.example.com/one serverside-applied')
  })

  test('apply --server-side takes over from apply without', async () => {
    const text = (value: string) => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'moved' }, data: { a: value } })
    await kubectl('apply', text('1'), '-f', '-')
    assert.equal(await kubectl('apply', text('2'), '--server-side', '-f', '-'), 'configmap/moved serverside-applied')
    assert.equal(await kubectl('get', '', 'configmap', 'moved', '-o', 'jsonpath={.data.a}'), '2')
    // The annotation follows server-side apply, in words that are not quite those of kubectl: so says kube-apiserver's too.
    assert.equal(await kubectl('apply', text('2'), '-f', '-'), 'configmap/moved configured')
    assert.equal(await kubectl('apply', text('2'), '-f', '-'), 'configmap/moved unchanged')
  })

  test('explain and api-resources know the fields', async () => {
    assert.match(await kubectl('explain', '', 'boat.spec'), /color\t<string> -required-\n +What it is painted with\./)
    // The first reads OpenAPI 3, the second OpenAPI 2 as protobuf.
    for (const output of ['plaintext', 'plaintext-openapiv2']) {
      const all = await kubectl('explain', '', 'boat', '--recursive', '--output', output)
      assert.match(all, /\n +spec\t<Object>[^\n]*\n +color\t<string>/, output)
    }
    assert.match(await kubectl('explain', '', 'deployment.spec.template.spec', '--recursive'), /\n +containerPort\t<integer> -required-/)
    assert.match(await kubectl('api-resources', '', '--api-group=example.com'), /boats +bt +example\.com\/v1 +true +Boat/)
  })

  test('create of built-in kinds, which kubectl sends as protobuf', async () => {
    assert.equal(await kubectl('create', '', 'namespace', 'made'), 'namespace/made created')
    assert.equal(await kubectl('create', '', 'configmap', 'made', '-n', 'made', '--from-literal=a=b'), 'configmap/made created')
    assert.equal(await kubectl('create', '', 'secret', 'generic', 'made', '-n', 'made', '--from-literal=a=b'), 'secret/made created')
    assert.equal(await kubectl('get', '', 'secret', 'made', '-n', 'made', '-o', 'jsonpath={.data.a}'), 'Yg==')
    assert.equal(await kubectl('delete', '', 'namespace', 'made', '--timeout=5s'), 'namespace "made" deleted')
  })

  test('an unknown field is refused by name', async () => {
    await assert.rejects(kubectl('apply', manifest('red').replace('color', 'colour'), '-f', '-'), /unknown field "spec.colour"/)
  })

  test('auth can-i, whoami, create token', async () => {
    assert.equal(await kubectl('auth', '', 'can-i', 'delete', 'nodes'), 'yes')
    assert.match(await kubectl('auth', '', 'whoami'), /Username +oarlock:admin/)
    await kubectl('create', '', 'serviceaccount', 'robot')
    await kubectl('create', '', 'rolebinding', 'robot', '--clusterrole=view', '--serviceaccount=default:robot')
    const token = await kubectl('create', '', 'token', 'robot', '--duration=20m')
    const asRobot = (...args: string[]) =>
      run('kubectl', ['--kubeconfig=/dev/null', `--server=${server.server.url}`, '--insecure-skip-tls-verify', `--token=${token}`, ...args])
    assert.match((await asRobot('auth', 'whoami')).stdout, /system:serviceaccount:default:robot/)
    assert.match((await asRobot('auth', 'can-i', '--list')).stdout, /configmaps +\[\] +\[\] +\[get list watch\]/)
    assert.equal((await asRobot('auth', 'can-i', 'list', 'pods')).stdout.trim(), 'yes')
    await assert.rejects(asRobot('auth', 'can-i', 'list', 'secrets'), { stdout: 'no\n' })
    await assert.rejects(asRobot('get', 'secrets'), /secrets is forbidden: User "system:serviceaccount:default:robot" cannot list/)
    await assert.rejects(
      run('kubectl', ['--kubeconfig', server.server.kubeconfigPath, '--as=bob', 'get', 'pods']),
      /impersonation is not supported/,
    )
  })

  test('auth reconcile makes and completes roles', async () => {
    const role = (verbs: string) =>
      `apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: sailors, namespace: default}\nrules: [{apiGroups: [example.com], resources: [boats], verbs: [${verbs}]}]\n`
    await kubectl('auth', role('get'), 'reconcile', '-f', '-')
    await kubectl('auth', role('list'), 'reconcile', '-f', '-')
    assert.equal(await kubectl('get', '', 'role', 'sailors', '-o', 'jsonpath={.rules[*].verbs}'), '["get"] ["list"]')
  })
})
