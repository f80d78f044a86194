/** kubectl with a custom resource, and with what it reads from OpenAPI. */
import { equal, match } from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import Type from 'typebox'
import { defineResource } from '../../src/kubernetes/object/index.ts'
import { type ClientsServer, skipWithoutClient, startServerForClients } from './clients.ts'
import { type Kubectl, kubectlFor } from './kubectl.ts'

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

describe('kubectl with a custom resource', { skip: skipWithoutClient('kubectl') }, () => {
  let server: ClientsServer
  let kubectl: Kubectl
  before(async () => {
    server = await startServerForClients()
    kubectl = kubectlFor(server)
    await kubectl.output('apply -f -', JSON.stringify(boat.toCrd()))
    await kubectl.output('wait --for=condition=Established crd/boats.example.com --timeout=5s')
  })
  after(() => server.close())

  test('apply, get, describe, label, annotate, patch, wait and delete', async () => {
    equal(await kubectl.output('apply -f -', manifest('red')), 'boat.example.com/one created\n')
    equal(await kubectl.output('apply -f -', manifest('red')), 'boat.example.com/one unchanged\n')
    equal(await kubectl.output('apply -f -', manifest('blue')), 'boat.example.com/one configured\n')
    match(await kubectl.output('get bt'), /^NAME +COLOR\none +blue\n$/)
    match(await kubectl.output('get fleet -A -o wide'), /default +one +blue/)
    match(await kubectl.output('describe bt one'), /Color: +blue/)
    equal(await kubectl.output('label bt one a=b'), 'boat.example.com/one labeled\n')
    equal(await kubectl.output('annotate bt one a=b'), 'boat.example.com/one annotated\n')
    equal(await kubectl.output('patch bt one --type=merge -p {"spec":{"oars":4}}'), 'boat.example.com/one patched\n')
    await kubectl.output('patch bt one --subresource=status --type=merge -p {"status":{"phase":"Afloat"}}')
    equal(await kubectl.output('wait --for=jsonpath={.status.phase}=Afloat bt/one --timeout=5s'), 'boat.example.com/one condition met\n')
    match(await kubectl.output('delete bt one'), /^boat\.example\.com "one" deleted/)
  })

  test('apply --server-side names a conflict, and --force-conflicts resolves it', async () => {
    const apply = (color: string, manager: string, more = '') =>
      kubectl.run(`apply --server-side --field-manager=${manager}${more} -f -`, manifest(color))
    equal((await apply('red', 'one')).stdout, 'boat.example.com/one serverside-applied\n')
    const conflict = await apply('green', 'two')
    equal(conflict.code, 1)
    match(conflict.stderr, /conflict with "one": \.spec\.color/)
    equal((await apply('green', 'two', ' --force-conflicts')).stdout, 'boat.example.com/one serverside-applied\n')
  })

  test('apply --server-side takes ownership of fields from client-side apply', async () => {
    const text = (value: string) => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'moved' }, data: { a: value } })
    await kubectl.output('apply -f -', text('1'))
    equal(await kubectl.output('apply --server-side -f -', text('2')), 'configmap/moved serverside-applied\n')
    equal(await kubectl.output('get configmap moved -o jsonpath={.data.a}'), '2')
    // Server-side apply updates the annotation of client-side apply in a slightly different form, in kube-apiserver too.
    equal(await kubectl.output('apply -f -', text('2')), 'configmap/moved configured\n')
    equal(await kubectl.output('apply -f -', text('2')), 'configmap/moved unchanged\n')
  })

  test('explain and api-resources list the fields', async () => {
    match(await kubectl.output('explain boat.spec'), /color\t<string> -required-\n +What it is painted with\./)
    // The first reads OpenAPI 3, the second OpenAPI 2 as protobuf.
    for (const output of ['plaintext', 'plaintext-openapiv2']) {
      const all = await kubectl.output(`explain boat --recursive --output ${output}`)
      match(all, /\n +spec\t<Object>[^\n]*\n +color\t<string>/, output)
    }
    match(await kubectl.output('explain deployment.spec.template.spec --recursive'), /\n +containerPort\t<integer> -required-/)
    match(await kubectl.output('api-resources --api-group=example.com'), /boats +bt +example\.com\/v1 +true +Boat/)
  })

  test('rejects an unknown field by name', async () => {
    const { code, stderr } = await kubectl.run('apply -f -', manifest('red').replace('color', 'colour'))
    equal(code, 1)
    match(stderr, /unknown field "spec.colour"/)
  })

  test('auth reconcile creates and extends a Role', async () => {
    const role = (verbs: string) =>
      `apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: sailors, namespace: default}\nrules: [{apiGroups: [example.com], resources: [boats], verbs: [${verbs}]}]\n`
    await kubectl.output('auth reconcile -f -', role('get'))
    await kubectl.output('auth reconcile -f -', role('list'))
    equal(await kubectl.output('get role sailors -o jsonpath={.rules[*].verbs}'), '["get"] ["list"]')
  })
})
