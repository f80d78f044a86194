import { deepEqual, doesNotMatch, equal, match } from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { chartFiles } from '../scripts/generate-chart.ts'
import { kustomizeFiles } from '../scripts/generate-kustomize.ts'
import { installationObjects } from '../src/app/controllers/install.ts'
import { externalMetricsManifests, podWorkerBindings } from '../src/app/manifests/index.ts'

const root = join(import.meta.dirname, '..')
const chart = join(root, 'charts/oarlock')
const clients = process.env.OARLOCK_CLIENTS_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock', 'clients')
const helm = join(clients, 'helm')
const skip = existsSync(helm) ? false : 'helm not found: run scripts/build-clients.sh (needs Go)'

type Manifest = { kind: string; metadata: { name: string; namespace?: string }; spec?: Record<string, unknown> }

function template(...args: string[]) {
  const all = ['template', 'oarlock', chart, '--kube-version', '1.36.0', '--namespace', 'oarlock-system', '--include-crds', ...args]
  const { status, stdout, stderr } = spawnSync(helm, all, { encoding: 'utf8', maxBuffer: 2 ** 26 })
  return {
    status,
    stderr,
    objects: status === 0 ? parseAllDocuments(stdout).flatMap(document => (document.toJSON() as Manifest) ?? []) : [],
  }
}

const keyOf = ({ kind, metadata: { name, namespace } }: Manifest) => `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`

test('the generated files of the chart are up to date (update them with node scripts/generate-chart.ts)', () => {
  const expected = chartFiles()
  const outdated = [...expected].filter(
    ([path, text]) => !existsSync(join(chart, path)) || readFileSync(join(chart, path), 'utf8') !== text,
  )
  deepEqual(
    outdated.map(([path]) => path),
    [],
  )
  const present = globSync(['crds/*', 'templates/generated/*', 'files/*', 'values.schema.json'], { cwd: chart })
  deepEqual(present.sort(), [...expected.keys()].sort())
})

test('the chart installs what "oarlock manifests" prints, except for the namespace of the release', { skip }, () => {
  const rendered = new Map(template().objects.map(object => [keyOf(object), object]))
  const expected = (installationObjects({ policies: true }) as Manifest[]).filter(object => keyOf(object) !== 'Namespace oarlock-system')
  for (const object of expected) deepEqual(rendered.get(keyOf(object)), JSON.parse(JSON.stringify(object)), keyOf(object))
})

test('controllers share the Stacks with controllers.shards and are replaced one at a time, and one leads without', { skip }, () => {
  const specOf = (...set: string[]) => {
    const deployment = template(...set).objects.find(object => keyOf(object) === 'Deployment oarlock-system/oarlock-controllers')
    const { strategy, minReadySeconds, template: pod } = deployment!.spec as Record<string, unknown>
    const { containers } = (pod as { spec: { containers: { args: string[] }[] } }).spec
    return { strategy, minReadySeconds, args: containers[0]!.args.filter(arg => arg.startsWith('--shards')) }
  }
  deepEqual(specOf(), { strategy: undefined, minReadySeconds: undefined, args: [] })
  deepEqual(specOf('--set', 'controllers.replicas=3,controllers.shards=3'), {
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    minReadySeconds: 15,
    args: ['--shards=3'],
  })
  match(template('--set', 'controllers.shards=63').stderr, /controllers.*shards|shards.*62/s)
})

test('the workers of a pool have its image, of which fields that are not set are those of the common one', { skip }, () => {
  const digest = `sha256:${'a'.repeat(64)}`
  const imageOf = (set: string, of = 'WorkerPool default') => {
    const { objects, stderr } = template('--set', `image.repository=r/oarlock,image.tag=v2,${set}`)
    const { spec } = objects.find(object => keyOf(object) === of) ?? {}
    const { containers } =
      (spec?.template as { spec: { containers: { image: string; imagePullPolicy: string }[] } } | undefined)?.spec ?? {}
    return containers?.map(({ image, imagePullPolicy }) => `${image} ${imagePullPolicy}`)[0] ?? stderr
  }
  const own = 'pools.default.image'
  equal(imageOf('pools.default.resources.limits.memory=1Gi'), 'r/oarlock:v2 IfNotPresent')
  equal(imageOf(`${own}.repository=r/terraform`), 'r/terraform:v2 IfNotPresent')
  equal(imageOf(`${own}.tag=v3,${own}.pullPolicy=Always`), 'r/oarlock:v3 Always')
  equal(imageOf(`${own}.digest=${digest}`), `r/oarlock@${digest} IfNotPresent`)
  equal(imageOf(`image.digest=${digest}`), `r/oarlock@${digest} IfNotPresent`)
  equal(imageOf(`image.digest=${digest},${own}.repository=r/terraform`), 'r/terraform:v2 IfNotPresent')
  const controllers = 'Deployment oarlock-system/oarlock-controllers'
  equal(imageOf(`${own}.repository=r/terraform`, controllers), 'r/oarlock:v2 IfNotPresent')
  equal(imageOf(`image.digest=${digest}`, controllers), `r/oarlock@${digest} IfNotPresent`)
  const warm = 'warmWorkers.edge.replicas=1,warmWorkers.edge.image'
  equal(imageOf(`${warm}.repository=r/terraform`, 'Deployment oarlock-system/oarlock-workers-edge'), 'r/terraform:v2 IfNotPresent')
  match(imageOf(`${own}.digest=latest`), /digest/)
  match(imageOf(`${own}.name=x`), /name/)
})

test('the chart binds the ServiceAccounts of worker Pods as podWorkerBindings does', { skip }, () => {
  const pools = 'pools.default.serviceAccountName=oarlock-worker-aws,pools.other.spec.namespace=builds'
  const { objects, stderr } = template('--set', `${pools},workerAccounts[0].namespace=shop,workerAccounts[0].name=oarlock-worker`)
  const expected = [
    podWorkerBindings('oarlock-system', 'oarlock-worker-aws', 'all'),
    podWorkerBindings('builds', 'oarlock-worker', 'all'),
    podWorkerBindings('shop', 'oarlock-worker', 'own'),
  ].flat()
  for (const { kind, metadata, roleRef, subjects } of expected) {
    const found = objects.find(object => keyOf(object) === keyOf({ kind, metadata })) as Record<string, unknown> | undefined
    deepEqual({ roleRef: found?.roleRef, subjects: found?.subjects }, { roleRef, subjects }, `${kind} ${metadata.name} ${stderr}`)
  }
})

test('the chart has external metrics only if they are enabled, and scales a Deployment by its own HorizontalPodAutoscaler', {
  skip,
}, () => {
  const manifests = externalMetricsManifests as readonly Manifest[]
  const isThere = (objects: readonly Manifest[]) => manifests.filter(object => objects.some(other => keyOf(other) === keyOf(object))).length
  equal(isThere(template().objects), 0)
  const { objects } = template('--set', 'externalMetrics.enabled=true,warmWorkers.edge.autoscaling.maxReplicas=20')
  equal(isThere(objects), manifests.length)
  const specOf = (key: string) => objects.find(object => keyOf(object) === key)?.spec as Record<string, unknown>
  equal(specOf('Deployment oarlock-system/oarlock-workers-edge').replicas, undefined)
  deepEqual(specOf('WorkerPool edge'), { mode: 'External', lifecycle: 'Warm', slots: 1, min: 1, max: 20 })
  const { metrics, behavior } = specOf('HorizontalPodAutoscaler oarlock-system/oarlock-workers-edge') as Record<string, unknown>
  const metric = { name: 'oarlock_pool_desired_workers', selector: { matchLabels: { pool: 'edge' } } }
  deepEqual(metrics, [{ type: 'External', external: { metric, target: { type: 'AverageValue', averageValue: '1' } } }])
  match(JSON.stringify(behavior), /"scaleUp":.*"tolerance":"0".*"scaleDown":.*"tolerance":"0"/)
})

test('without peers a NetworkPolicy allows only Oarlock and, for external metrics, kube-apiserver', { skip }, () => {
  type Rule = { from?: object[]; ports: { port: number }[] }
  const closed = ['--set-json', 'networkPolicies={"clients":[],"monitoring":[]}']
  const rulesOf = (...args: string[]) =>
    template(...closed, ...args)
      .objects.filter(({ kind }) => kind === 'NetworkPolicy')
      .flatMap(({ spec }) => (spec as { ingress: Rule[] }).ingress)
  const open = (rules: readonly Rule[]) =>
    rules.filter(({ from }) => from === undefined || from.length === 0).flatMap(({ ports }) => ports.map(({ port }) => port))
  equal(rulesOf().length, 4)
  deepEqual(open(rulesOf()), [])
  deepEqual(open(rulesOf('--set', 'externalMetrics.enabled=true')), [7472])
})

test('Prometheus verifies stores and join service by the authorities that they publish', { skip }, () => {
  const monitoring = ['--api-versions', 'monitoring.coreos.com/v1', '--set', 'monitoring.serviceMonitor.enabled=true']
  const verified = (...args: string[]) =>
    Object.fromEntries(
      template(...monitoring, ...args)
        .objects.filter(({ kind }) => kind === 'ServiceMonitor')
        .map(({ metadata, spec }) => [metadata.name, (spec as { endpoints: { tlsConfig: object }[] }).endpoints[0]?.tlsConfig]),
    )
  const by = (role: string, service: string) => ({
    ca: { configMap: { name: `oarlock-endpoint-${role}`, key: 'ca.crt' } },
    serverName: `oarlock-${service}.oarlock-system.svc`,
  })
  const unverified = { insecureSkipVerify: true }
  const joinService = by('join', 'join-service')
  deepEqual(verified(), {
    'oarlock-stores': by('stores', 'stores'),
    'oarlock-join-service': joinService,
    'oarlock-controller': unverified,
    'oarlock-console-server': unverified,
  })
  // The authority of an issuer may be in no ConfigMap.
  deepEqual(verified('--set', 'stores.certificate.mode=CertManager,stores.certificate.issuerRef.name=a'), {
    'oarlock-stores': unverified,
    'oarlock-join-service': joinService,
    'oarlock-controller': unverified,
    'oarlock-console-server': unverified,
  })
})

test('deploy/kustomize is the chart with its default values (update it with node scripts/generate-kustomize.ts HELM)', { skip }, () => {
  const directory = join(root, 'deploy/kustomize')
  const outdated = [...kustomizeFiles(helm)].filter(([name, text]) => readFileSync(join(directory, name), 'utf8') !== text)
  deepEqual(
    outdated.map(([name]) => name),
    [],
  )
})

test('the version of the chart is that of the package', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const text = readFileSync(join(chart, 'Chart.yaml'), 'utf8')
  match(text, new RegExp(`^version: ${version}$`, 'm'))
  match(text, new RegExp(`^appVersion: ${version}$`, 'm'))
})

for (const [name, args, message] of [
  ['another namespace', ['--namespace', 'default'], /namespace default, allowed: oarlock-system/],
  ['an unknown value', ['--set', 'controllers.replica=3'], /additional properties 'replica' not allowed/],
  ['no controllers', ['--set', 'controllers.replicas=0'], /controllers\/replicas/],
  ['CertManager without an issuer', ['--set', 'stores.certificate.mode=CertManager'], /issuerRef\.name is missing/],
  ['a pool of both kinds', ['--set', 'warmWorkers.default.replicas=1'], /warmWorkers\.default and pools\.default have the same name/],
  [
    'a HorizontalPodAutoscaler without its API',
    ['--set', 'warmWorkers.edge.autoscaling.maxReplicas=3'],
    /externalMetrics\.enabled is false/,
  ],
  ['a Deployment of unknown size', ['--set', 'warmWorkers.edge.slots=2'], /warmWorkers\.edge has neither replicas nor autoscaling/],
  [
    'external metrics of cert-manager without an issuer',
    ['--set', 'externalMetrics.enabled=true,externalMetrics.certificate.mode=CertManager'],
    /externalMetrics\.certificate\.issuerRef\.name is missing/,
  ],
  ['a pool with an invalid value', ['--set', 'pools.default.spec.max=-1'], /pools\/default\/spec\/max/],
  ['a pool with an unknown field', ['--set', 'pools.default.spec.maximum=3'], /additional properties 'maximum' not allowed/],
  ['a pool of another mode', ['--set', 'pools.default.spec.mode=Process'], /pools\/default\/spec\/mode': value must be 'Pod'/],
  [
    'a variable whose value is a number',
    ['--set', 'pools.default.extraEnv[0].name=A', '--set', 'pools.default.extraEnv[0].value=1'],
    /extraEnv\/0\/value': got number, want string/,
  ],
  ['an uninstall timeout that is no duration', ['--set', 'uninstall.timeout=4 minutes'], /uninstall\/timeout/],
  ['a schedule without its end', ['--set', 'pools.default.spec.schedule[0].from=07:00'], /missing properties 'to', 'min'/],
  [
    'Secrets of Oarlock itself for Runs',
    ['--set', 'workerNamespaces={oarlock-system}'],
    /workerNamespaces has oarlock-system, whose Secrets/,
  ],
  ['an address without TLS', ['--set', 'stores.advertiseUrl=http://stores'], /stores\/advertiseUrl/],
  ['a ServiceMonitor without its kind', ['--set', 'monitoring.serviceMonitor.enabled=true'], /install the Prometheus operator first/],
] as const)
  test(`the chart rejects ${name}`, { skip }, () => {
    const { status, stderr } = template(...args)
    equal(status, 1)
    match(stderr, message)
  })

test('helm test runs with an account that may read no Secrets, and verifies certificates', { skip }, () => {
  const { objects } = template()
  const found = (kind: string, name: string) => objects.find(object => object.kind === kind && object.metadata.name === name)
  const { spec } = found('Pod', 'oarlock-test') as unknown as { spec: { serviceAccountName: string; containers: { args: string[] }[] } }
  equal(spec.serviceAccountName, 'oarlock-test')
  doesNotMatch(JSON.stringify(spec.containers), /rejectUnauthorized/)
  const { rules } = found('ClusterRole', 'oarlock:test') as unknown as { rules: { resources: string[]; verbs: string[] }[] }
  deepEqual(
    rules.map(({ resources, verbs }) => [resources, verbs]),
    [
      [['customresourcedefinitions'], ['get']],
      [
        ['workerpools', 'runs'],
        ['get', 'list'],
      ],
    ],
  )
})

test('every container of the chart meets the Pod Security Standard restricted', { skip }, () => {
  const { objects } = template('--set', 'warmWorkers.edge.replicas=2')
  type PodSpec = { securityContext?: Record<string, unknown>; containers?: { name: string; securityContext?: Record<string, unknown> }[] }
  const podSpecs = objects.flatMap(object => {
    const spec = object.spec as { template?: { spec?: PodSpec } } & PodSpec
    const found = spec?.template?.spec ?? spec
    return found?.containers ? [[keyOf(object), found] as const] : []
  })
  equal(podSpecs.length, 10)
  for (const [key, { securityContext, containers = [] }] of podSpecs) {
    deepEqual([securityContext?.runAsNonRoot, securityContext?.seccompProfile], [true, { type: 'RuntimeDefault' }], key)
    for (const container of containers)
      deepEqual(
        container.securityContext,
        { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        `${key} ${container.name}`,
      )
  }
})

const provider = { issuerUrl: 'https://issuer.example', clientId: 'oarlock' }

for (const [field, values] of [
  ['hosts/0', [{ hosts: ['https://x'] }, { hosts: ['x y'] }, { hosts: ['x\n- --log=-'] }, { hosts: ['-x'] }]],
  [
    'oidc/issuerUrl',
    ['http://x', 'https://x y', 'https://x\n- --data=/', 'https://x#y', 'https://'].map(issuerUrl => ({
      oidc: { ...provider, issuerUrl },
    })),
  ],
  ['oidc/clientId', [{ oidc: { ...provider, clientId: 'a\n- b' } }, { oidc: { ...provider, clientId: 7 } }]],
  ['oidc/clientSecret/name', ['x } }, evil: {', 'UPPER', '../x'].map(name => ({ oidc: { ...provider, clientSecret: { name } } }))],
  ['oidc/clientSecret/key', ['../../etc/passwd', ''].map(key => ({ oidc: { ...provider, clientSecret: { name: 'x', key } } }))],
  ['oidc/caConfigMap/key', [{ oidc: { ...provider, caConfigMap: { name: 'x', key: 'a/b' } } }]],
  ['oidc/scopes/0', [{ oidc: { ...provider, scopes: ['a b'] } }, { oidc: { ...provider, scopes: [''] } }]],
  ['oidc/usernamePrefix', [{ oidc: { ...provider, usernamePrefix: 'a\nb' } }]],
  ['oidc/groups/0', [' ops', 'a\nb', ''].map(group => ({ oidc: { ...provider, groupsClaim: 'g', groups: [group] } }))],
  ['ingress/tlsSecretName', [{ ingress: { tlsSecretName: 'x }, y: {' } }]],
  ['podAnnotations/a', [{ podAnnotations: { a: 1 } }]],
] as const)
  test(`the chart rejects a wrong console.${field.replaceAll('/', '.')} and names it`, { skip }, () => {
    for (const value of values) {
      const { status, stderr } = template('--set-json', `console=${JSON.stringify(value)}`)
      equal(status, 1, JSON.stringify(value))
      match(stderr, new RegExp(`console[/.]${field.replaceAll('/', '[/.]')}\\b`), JSON.stringify(value))
    }
  })

test('the chart rejects settings of a provider without its address', { skip }, () => {
  const { stderr } = template('--set', 'console.oidc.caConfigMap.name=x')
  match(stderr, /console\.oidc\.caConfigMap\.name is set, but console\.oidc\.issuerUrl is not: set the address of the provider/)
})

test('the chart rejects users and groups of Kubernetes itself', { skip }, () => {
  for (const value of [{ groupsClaim: 'g', groups: ['system:masters'] }, { usernamePrefix: 'system:' }, { groupsPrefix: 'system:x' }]) {
    const { stderr } = template('--set-json', `console=${JSON.stringify({ oidc: { ...provider, ...value } })}`)
    match(stderr, /console\.oidc has system:\w*: a provider cannot have users or groups of Kubernetes itself/)
  }
})

test('the console gets the values of its provider unchanged, whatever they mean in YAML or a template', { skip }, () => {
  const name = `a: b #c "d" {{ .Release }} 'e' \\ größe`
  const oidc = {
    ...{ issuerUrl: 'https://issuer.example/a,b', clientId: '{x: #1}', name, usernameClaim: 'https://x/#y', usernamePrefix: name },
    ...{ clientSecret: { name: 'secret' }, caConfigMap: { name: 'authorities' } },
  }
  const { objects, stderr } = template('--set-json', `console=${JSON.stringify({ oidc })}`)
  const deployment = objects.find(object => keyOf(object) === 'Deployment oarlock-system/oarlock-console-server')
  equal(deployment === undefined, false, stderr)
  type PodSpec = { containers: { args: string[]; volumeMounts: object[] }[]; volumes: object[] }
  const { spec } = deployment!.spec!.template as { spec: PodSpec }
  deepEqual(
    spec.containers[0]!.args.filter(arg => arg.startsWith('--oidc')),
    [
      ...['--oidc-issuer-url=https://issuer.example/a,b', '--oidc-client-id={x: #1}', '--oidc-client-secret-file=/oidc/client-secret'],
      ...['--oidc-ca-file=/oidc-ca/ca.crt', `--oidc-name=${name}`, '--oidc-username-claim=https://x/#y', `--oidc-username-prefix=${name}`],
    ],
  )
  deepEqual(spec.containers[0]!.volumeMounts.at(-1), { name: 'oidc-ca', mountPath: '/oidc-ca', readOnly: true })
  deepEqual(spec.volumes.at(-1), { name: 'oidc-ca', configMap: { name: 'authorities' } })
})
