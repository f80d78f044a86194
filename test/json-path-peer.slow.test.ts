/** `-o jsonpath` and `--sort-by` of `oarlock get` against those of the real kubectl, on one server. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { renderJsonPath } from '../src/cli/output/json-path.ts'
import { createClient } from '../src/kubernetes/client/index.ts'
import { type ApiServer, startServer } from '../src/kubernetes/server/index.ts'
import { removeDirectory } from './support/oarlock-process.ts'
import { runOarlock, runProgram, skipWithout } from './support/run-program.ts'

const configMap = (name: string, metadata: object, data: object, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  data,
  ...more,
})
const role = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  metadata: { name: 'r' },
  rules: [
    { apiGroups: [''], resources: ['pods', 'secrets'], verbs: ['get'] },
    { apiGroups: ['apps'], resources: ['deployments'], verbs: ['list'] },
  ],
}
const objects = [
  configMap('a', { labels: { app: 'web', 'app.kubernetes.io/name': 'x-y' } }, { k: 'v', h: '<b>&"q"' }),
  configMap(
    'b',
    { labels: { app: 'db' }, finalizers: ['example.org/1', 'example.org/2', 'example.org/3'] },
    { k: '10' },
    { immutable: true },
  ),
  configMap('item-10', {}, { k: '9', 'dotted.key': 'd' }),
  configMap('item-9', {}, { k: '9', 'with-dash': 's' }),
]

/** Each is rendered the same, or an error of both. */
const templates = `
{.items[*].metadata.name}
.items
text only
{.kind}
a{.kind}b{.kind}
{.kind .apiVersion}
{$.kind}
{@.kind}
{.items[0].data}
{.items[0].metadata.labels}
{.items[0]['kind','apiVersion']}
{.items[*]['kind','metadata.name']}
{.items[0]['metadata']['name']}
{.items[0].metadata.labels.app\\.kubernetes\\.io/name}
{.items[0].metadata.labels['app\\.kubernetes\\.io/name']}
{.items[2].data.dotted\\.key}
{.items[2].data['dotted\\.key']}
{.items[3].data['with-dash']}
{.items[-1].metadata.name}
{.items[0:2].metadata.name}
{.items[:2].metadata.name}
{.items[1:].metadata.name}
{.items[::2].metadata.name}
{.items[-2:].metadata.name}
{.items[1:-1].metadata.name}
{.items[0,2].metadata.name}
{.items[9].metadata.name}
{.items[1].metadata.finalizers}
{.items[1].metadata.finalizers[0:1]}
{.items[1].metadata.finalizers[1:1]}
{.items[1].metadata.finalizers[2:1]}
{.items[1].metadata.finalizers[::0]}
{.items[*].metadata.finalizers[*]}
{.items[1].immutable}
{.items[*].immutable}
{.missing}
{.items[*].missing.x}
{.items[0].metadata.name[0]}
{.items.metadata.name}
{..k}
{.items[5]..apiGroups}
{.items[*].rules[*].verbs[0]}
{range .items[*]}{.metadata.name}{"\\t"}{.data.k}{"\\n"}{end}
{range .items[*]}[{.metadata.name}]{end}x
{range .items[*]}{range .metadata.finalizers[*]}{@} {end}{end}
{range .items[?(@.metadata.labels)]}{.metadata.name},{end}
{.items[?(@.metadata.name=="a")].data.h}
{.items[?(@.metadata.name!='a')].metadata.name}
{.items[?(@.metadata.name>"b")].metadata.name}
{.items[?(@.metadata.name<="b")].metadata.name}
{.items[?(@.data.k=='9')].metadata.name}
{.items[?(@.immutable)].metadata.name}
{.items[?(@.immutable==true)].metadata.name}
{.items[?(@.missing=="x")].metadata.name}
{.items[?(@.rules[0].verbs[0]=="get")].metadata.name}
{.items[5].rules[?(@.verbs[0]=="list")].resources}
{.items[5].rules[*].resources[-1]}
{.items[5].rules}
{.items[?(@.metadata.labels.app=="web")].metadata.labels.app}
{.items[1].metadata.labels.*}x
{"text"}{'single'}
{1}{true}{-2}
{"a\\tb"}
{.items[*].metadata.labels}
{
{.items[}
{.items[x]}
{end}
{foo}
{.items[?(@.kind==)]}
{.items[?(@.kind=="a" && @.kind=="b")]}
{.items[?(@.data>1)]}
{.items[?(@.metadata.name>1)]}`
  .slice(1)
  .split('\n')

/** What a template accepts here and not in kubectl; there is a reason for each. */
const more = new Map([['{.items[*].metadata["name"]}', 'a name in double quotes']])

/** Ages differ between two requests, and kubectl makes no column narrower than three characters. */
const comparable = (text: string) => text.replace(/\b\d+s\b/g, 'AGE').replace(/ +/g, ' ')

describe('jsonpath', { skip: skipWithout('kubectl') }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-jsonpath-'))
  let server: ApiServer
  let list: unknown

  before(async () => {
    server = await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } })
    const client = await createClient({ kubeconfig: server.kubeconfigPath })
    await client.request({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: 'jp' } } })
    for (const body of objects) await client.request({ method: 'POST', path: '/api/v1/namespaces/jp/configmaps', body })
    await client.request({ method: 'POST', path: '/apis/rbac.authorization.k8s.io/v1/namespaces/jp/roles', body: role })
    await client.close()
    list = JSON.parse((await kubectl('get', 'configmaps,roles', '-o', 'json')).stdout)
  })
  after(async () => {
    await server?.close()
    removeDirectory(dataDir)
  })

  const env = () => ({ KUBECONFIG: server.kubeconfigPath })
  const kubectl = (...args: string[]) => runProgram('kubectl', [...args, '-n', 'jp'], { env: env() })
  const oarlock = (...args: string[]) => runOarlock([...args, '-n', 'jp'], { env: env() })
  const render = (template: string): string | Error => {
    try {
      return renderJsonPath(template, list)
    } catch (error) {
      return error as Error
    }
  }

  test('every template has the same result as with kubectl', async () => {
    for (const template of templates) {
      const { code, stdout } = await kubectl('get', 'configmaps,roles', '-o', `jsonpath=${template}`)
      const own = render(template)
      if (code === 0) equal(own, stdout, template)
      else ok(own instanceof Error && own.name === 'JsonPathError', `${template}: kubectl rejects it, and the result here is ${own}`)
    }
    ok(render('{range .items[*]}') instanceof Error, 'kubectl prints nothing, which hides the mistake')
    for (const [template, why] of more) {
      equal((await kubectl('get', 'configmaps', '-o', `jsonpath=${template}`)).code, 1, `kubectl has ${why} too: move it to the others`)
      equal(typeof render(template), 'string', why)
    }
  })

  test('oarlock get prints what kubectl get prints: one object, several, and a selection', async () => {
    for (const args of [
      ['get', 'configmaps', '-o', 'jsonpath={.items[*].metadata.name}'],
      ['get', 'configmap', 'a', '-o', 'jsonpath={.data.k}{"\\n"}'],
      ['get', 'configmap/b', '-o', 'jsonpath={.metadata.finalizers}'],
      ['get', 'configmap', 'a', 'b', '-o', 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}'],
      ['get', 'configmaps', '-l', 'app=db', '-o', 'jsonpath={.items[*].metadata.name}'],
      ['get', 'configmaps', '--field-selector', 'metadata.name=b', '-o', 'name'],
      ['get', 'configmaps', '--sort-by', '.data.k', '-o', 'jsonpath={.items[*].metadata.name}'],
      ['get', 'configmaps', '--sort-by', '{.metadata.name}', '--no-headers'],
      ['get', 'configmaps', '--show-labels'],
    ]) {
      const [want, own] = await Promise.all([kubectl(...args), oarlock(...args)])
      deepEqual([own.code, comparable(own.stdout)], [0, comparable(want.stdout)], args.join(' '))
    }
  })
})
