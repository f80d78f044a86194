/** What `oarlock doctor` reads of a cluster. Nothing here decides whether it is good (`cluster-findings.ts`). */
import { request } from 'node:https'
import { apiGroup, systemNamespace, type WorkerPool, workerPoolResource, workersNamespace } from '../../api/index.ts'
import { clusterChecks, discovery, installation, joinTokens, type ManifestDifferences } from '../../app/index.ts'
import { type Client, leaseResource, namespaceResource } from '../../kubernetes/client/index.ts'
import { describeResource, isReason, type KubeObject } from '../../kubernetes/object/index.ts'
import { readWorkerPodAccess } from './worker-pod-places.ts'

/** A fact, or why it is not known. */
export type Known<T> = { readonly value: T } | { readonly unknown: string }

export type LeaseFact = {
  readonly name: string
  readonly namespace: string
  readonly holder: string
  readonly renewedAtMs: number
  readonly durationMs: number
}
export type EndpointFact = {
  readonly role: string
  readonly url: string | undefined
  /** It is published with a certificate authority; else those of the system apply. Default: no. */
  readonly hasCa?: boolean
  readonly unreachable: string | undefined
}
export type PoolFact = { readonly name: string; readonly reason: string; readonly message: string }
export type ComponentFact = { readonly name: string; readonly missing: readonly string[] }
type CrdFact = { readonly kind: 'current' | 'newer' | 'older' | 'missing'; readonly text: string }

export type ClusterFacts = {
  readonly server: string
  /** Oarlock's own API server: its authorizer restricts workers in place of policies. */
  readonly isEmbedded: boolean
  /** `oarlock up`: one process serves objects, states and joins, and runs the controllers. */
  readonly servesRoles: boolean
  readonly version: Known<string>
  /** Not known without a `Date` header. Clock of the server minus that of this machine, and by how much this may be wrong. */
  readonly clock: Known<{ readonly aheadMs: number; readonly uncertainMs: number; readonly serverNowMs: number }>
  readonly crds: Known<CrdFact>
  readonly servesPolicies: Known<boolean>
  readonly manifests: Known<ManifestDifferences & { readonly retired: readonly string[] }>
  /** What the user lacks to install. */
  readonly installerLacks: Known<readonly string[]>
  readonly components: Known<readonly ComponentFact[]>
  readonly storageClasses: Known<readonly { readonly name: string; readonly isDefault: boolean }[]>
  readonly claims: Known<readonly { readonly name: string; readonly phase: string }[]>
  /** The value of the label that enforces a Pod Security Standard; undefined without one, the namespace missing: no entry. */
  readonly podSecurity: Known<ReadonlyMap<string, string | undefined>>
  readonly endpoints: Known<readonly EndpointFact[]>
  readonly leader: Known<LeaseFact | undefined>
  readonly nodeLeases: Known<readonly LeaseFact[]>
  readonly workerLeases: Known<readonly LeaseFact[]>
  /** What worker Pods need in namespaces of their own and in those of Stacks. */
  readonly podBindings: Known<{ readonly namespaces: readonly string[]; readonly missing: readonly string[] }>
  readonly pools: Known<readonly PoolFact[]>
  readonly joinTokens: Known<readonly { readonly id: string; readonly pool: string; readonly expiresAtMs: number }[]>
}

const requestTimeoutMs = 5_000
const core = (kind: string, plural: string, scope: 'Cluster' | 'Namespaced') =>
  describeResource<object>({ group: '', version: 'v1', kind, plural, scope })
const claimResource = core('PersistentVolumeClaim', 'persistentvolumeclaims', 'Namespaced')
const classResource = describeResource<object>({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  scope: 'Cluster',
})

/** Reads all facts at the same time. What the user may not read, or the server does not serve, is unknown with the reason. */
export async function readClusterFacts(client: Client): Promise<ClusterFacts> {
  const checks = await clusterChecks()
  const { describeCrdState, readCrdState } = await installation()
  const version = await known(() => readVersion(client))
  const isEmbedded = 'value' in version && version.value.gitVersion.includes('+oarlock')
  const servesRoles = isEmbedded && (await servesJoins(client))
  const servesPolicies = await known(() => checks.servesPolicies(client))
  const policies = 'value' in servesPolicies && servesPolicies.value
  const names = ['controller', 'stores', 'join-service', 'pool', 'console-server'] as const
  const [crds, manifests, installerLacks, components, storageClasses, claims, podSecurity] = await Promise.all([
    known(async () => {
      const state = await readCrdState(client)
      return { kind: state.kind, text: describeCrdState(state) }
    }),
    known(async () => {
      const { oarlockManifests, retiredObjects, compareManifests } = checks
      const [differences, { missing: absent }] = await Promise.all([
        compareManifests(client, oarlockManifests({ policies, externalMetrics: await servesExternalMetrics(client) })),
        compareManifests(client, retiredObjects),
      ])
      const retired = retiredObjects.map(({ kind, metadata: { name } }) => `${kind}/${name}`).filter(name => !absent.includes(name))
      return { ...differences, retired }
    }),
    known(() => lackOfInstaller(client, checks.oarlockManifests({ policies }))),
    known(() => Promise.all(names.map(async name => ({ name, missing: await checks.missingAccountRights(client, name) })))),
    known(async () =>
      (await client.resource(classResource).list()).items.map(({ metadata: { name, annotations } }) => ({
        name,
        isDefault: annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true',
      })),
    ),
    known(async () =>
      (await client.resource(claimResource).list({ namespace: systemNamespace })).items.map(claim => ({
        name: claim.metadata.name,
        phase: String((claim as KubeObject<{ status?: { phase?: string } }>).status?.phase ?? 'Pending'),
      })),
    ),
    known(() => readPodSecurity(client)),
  ])
  const [endpoints, leader, nodeLeases, workerLeases, podBindings, pools, tokens] = await Promise.all([
    known(() => readEndpoints(client)),
    known(async () => (await leasesIn(client, systemNamespace)).find(({ name }) => name === 'oarlock-controller')),
    known(() => leasesIn(client, 'kube-node-lease')),
    known(async () => (await leasesIn(client, systemNamespace)).filter(({ name }) => !name.startsWith('oarlock-'))),
    known(() => readWorkerPodAccess(client, isEmbedded)),
    known(() => readPools(client)),
    known(async () => await (await joinTokens()).listJoinTokens(client)),
  ])
  return {
    ...{
      server: client.server,
      isEmbedded,
      servesRoles,
      servesPolicies,
      crds,
      manifests,
      installerLacks,
      components,
      storageClasses,
      claims,
      podSecurity,
    },
    ...{ endpoints, leader, nodeLeases, workerLeases, podBindings, pools, joinTokens: tokens },
    version: 'value' in version ? { value: version.value.gitVersion } : version,
    clock: 'value' in version ? version.value.clock : version,
  }
}

async function known<T>(read: () => Promise<T>): Promise<Known<T>> {
  try {
    return { value: await read() }
  } catch (error) {
    if (isReason(error, 'Forbidden')) return { unknown: 'this user may not read it' }
    if (isReason(error, 'NotFound')) return { unknown: 'the server does not serve it' }
    return { unknown: error instanceof Error ? error.message : String(error) }
  }
}

/** The Date header has whole seconds: the middle of the second that it names is compared with the middle of the request. */
async function readVersion(client: Client): Promise<{ gitVersion: string; clock: ClusterFacts['clock'] }> {
  const sentMs = Date.now()
  const response = await client.request({ method: 'GET', path: '/version', timeoutMs: requestTimeoutMs })
  const receivedMs = Date.now()
  const { gitVersion = '' } = (await response.json()) as { gitVersion?: string }
  const date = Date.parse(String(response.headers.date ?? ''))
  if (Number.isNaN(date)) return { gitVersion, clock: { unknown: 'the response of the server has no Date header' } }
  const serverNowMs = date + 500
  const clock = { aheadMs: serverNowMs - (sentMs + receivedMs) / 2, uncertainMs: 500 + (receivedMs - sentMs) / 2, serverNowMs }
  return { gitVersion, clock: { value: clock } }
}

/** `oarlock up` lets workers join at its own address; `oarlock serve` does not. */
async function servesJoins(client: Client): Promise<boolean> {
  try {
    const response = await client.request({ method: 'GET', path: '/join/ca', timeoutMs: requestTimeoutMs })
    await response.text()
    return true
  } catch {
    return false
  }
}

/** Whether the APIService is that of Oarlock (`oarlock manifests --external-metrics`), and not of another adapter. */
async function servesExternalMetrics(client: Client): Promise<boolean> {
  const { compareManifests, externalMetricsManifests } = await clusterChecks()
  const services = externalMetricsManifests.flatMap(manifest => {
    const { service } = (manifest as { spec?: { service?: object } }).spec ?? {}
    return manifest.kind === 'APIService' ? [{ ...manifest, spec: { service } }] : []
  })
  const { missing, changed } = await compareManifests(client, services)
  return missing.length + changed.length === 0
}

const rbac = 'rbac.authorization.k8s.io'
/** What the chart adds to the output of `oarlock manifests`, in `oarlock-system`. Helm stores a release in a Secret. */
const chartResources = [
  ...['configmaps', 'persistentvolumeclaims', 'secrets', 'serviceaccounts', 'services'].map(resource => ({ group: '', resource })),
  ...['deployments', 'statefulsets'].map(resource => ({ group: 'apps', resource })),
  { group: 'batch', resource: 'jobs' },
  { group: 'networking.k8s.io', resource: 'networkpolicies' },
  { group: 'policy', resource: 'poddisruptionbudgets' },
]

/**
 * What `oarlock manifests | kubectl apply` and the chart with its default values write; an administrator may grant what he does not hold with
 * `escalate` and `bind`.
 */
async function lackOfInstaller(client: Client, manifests: readonly InstalledManifest[]): Promise<string[]> {
  const { isAllowed } = await clusterChecks()
  const written = manifests.map(({ apiVersion, kind, metadata: { namespace } }) => ({
    group: apiVersion.includes('/') ? apiVersion.split('/')[0]! : '',
    resource: pluralOf(kind),
    ...(namespace !== undefined && { namespace }),
  }))
  const needed = [
    { group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' },
    { group: '', resource: 'namespaces' },
    { group: apiGroup, resource: workerPoolResource.plural },
    ...chartResources.map(each => ({ ...each, namespace: systemNamespace })),
    ...written,
  ].flatMap(right => ['create', 'patch'].map(verb => ({ verb, ...right })))
  const escalations = [
    { group: rbac, resource: 'clusterroles' },
    ...[systemNamespace, workersNamespace].map(namespace => ({ group: rbac, resource: 'roles', namespace })),
  ].flatMap(right => ['escalate', 'bind'].map(verb => ({ verb, ...right })))
  const all = [...new Map([...needed, ...escalations].map(right => [JSON.stringify(right), right])).values()]
  const allowed = await Promise.all(all.map(right => isAllowed(client, right)))
  return all
    .filter((_, index) => !allowed[index])
    .map(right => {
      const { verb, group, resource } = right
      const where = 'namespace' in right ? ` in ${right.namespace}` : ''
      return `${verb} ${resource}${group ? `.${group}` : ''}${where}`
    })
}

type InstalledManifest = { readonly apiVersion: string; readonly kind: string; readonly metadata: { readonly namespace?: string } }

/** Of the kinds that `oarlock manifests` prints. */
const pluralOf = (kind: string): string => `${kind.toLowerCase().replace(/y$/, 'ie')}s`

async function readPodSecurity(client: Client): Promise<ReadonlyMap<string, string | undefined>> {
  const namespaces = client.resource(namespaceResource)
  const found = await Promise.all([systemNamespace, workersNamespace].map(name => namespaces.getOrUndefined(name)))
  const label = 'pod-security.kubernetes.io/enforce'
  return new Map(found.flatMap(namespace => (namespace ? [[namespace.metadata.name, namespace.metadata.labels?.[label]] as const] : [])))
}

async function readEndpoints(client: Client): Promise<EndpointFact[]> {
  const { endpointRoles, readEndpoint } = await discovery()
  return await Promise.all(
    endpointRoles.map(async role => {
      const endpoint = await readEndpoint(client, role)
      const { url, caCertificate } = endpoint ?? {}
      return { role, url, hasCa: caCertificate !== undefined, unreachable: url && (await unreachable(url, caCertificate)) }
    }),
  )
}

/** Why there is no HTTPS response from this machine; any status is one. No credential is sent. */
async function unreachable(url: string, ca: string | undefined): Promise<string | undefined> {
  return await new Promise(resolve => {
    const sent = request(url, { ...(ca && { ca }), agent: false, timeout: requestTimeoutMs }, response => {
      response.destroy()
      resolve(undefined)
    })
    sent.on('timeout', () => sent.destroy(new Error(`no response within ${requestTimeoutMs / 1_000} s`)))
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    sent.end()
  })
}

async function leasesIn(client: Client, namespace: string): Promise<LeaseFact[]> {
  const { items } = await client.resource(leaseResource).list({ namespace })
  return items.flatMap(({ metadata: { name }, spec }) =>
    spec?.renewTime && spec.holderIdentity
      ? [
          {
            name,
            namespace,
            holder: spec.holderIdentity,
            renewedAtMs: Date.parse(spec.renewTime),
            durationMs: (spec.leaseDurationSeconds ?? 0) * 1_000,
          },
        ]
      : [],
  )
}

async function readPools(client: Client): Promise<PoolFact[]> {
  const { items } = await client.resource(workerPoolResource).list()
  return items.map(({ metadata: { name }, status }: WorkerPool) => {
    const ready = status?.conditions?.find(({ type }) => type === 'Ready')
    const isFailing = ready?.status === 'False' || status?.problem !== undefined
    return { name, reason: isFailing ? (ready?.reason ?? 'NotReady') : '', message: isFailing ? (ready?.message ?? '') : '' }
  })
}
