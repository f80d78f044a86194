import { deepEqual, match, ok } from 'node:assert/strict'
import { test } from 'node:test'
import type { ClusterFacts, LeaseFact } from './cluster-facts.ts'
import { clusterFindings } from './cluster-findings.ts'

const nowMs = 1_000_000_000_000
const clock = (aheadMs: number, uncertainMs = 600) => ({ value: { aheadMs, uncertainMs, serverNowMs: nowMs } })
const lease = (name: string, agoMs: number, durationMs = 15_000): LeaseFact => ({
  ...{ name, namespace: 'oarlock-system', holder: `${name}-0` },
  ...{ renewedAtMs: nowMs - agoMs, durationMs },
})
const differences = { missing: [], changed: [], retired: [], total: 60 }
const endpoint = (role: string) => ({ role, url: `https://${role}`, unreachable: undefined })
const unknown = { unknown: 'this user may not read it' }

/** A cluster in which nothing is missing. */
const healthy: ClusterFacts = {
  ...{ server: 'https://10.0.0.1:6443', isEmbedded: false, servesRoles: false, version: { value: 'v1.36.3' } },
  ...{ clock: clock(0), crds: { value: { kind: 'current', text: 'has CRDs of revision 1' } } },
  ...{ servesPolicies: { value: true }, manifests: { value: differences }, installerLacks: { value: [] } },
  components: { value: [{ name: 'controller', missing: [] }] },
  ...{ storageClasses: { value: [{ name: 'fast', isDefault: true }] }, claims: { value: [{ name: 'stores', phase: 'Bound' }] } },
  podSecurity: { value: new Map([['oarlock-system', 'restricted']]) },
  endpoints: { value: ['stores', 'join', 'queue'].map(endpoint) },
  leader: { value: lease('oarlock-controller', 2_000) },
  ...{ nodeLeases: { value: [lease('n1', 9_000, 40_000)] }, workerLeases: { value: [] } },
  ...{ podBindings: { value: { namespaces: [], missing: [] } }, pools: { value: [] }, joinTokens: { value: [] } },
}
/** `oarlock up`: no policies, no Leases, no volumes, no published addresses. */
const up: ClusterFacts = {
  ...healthy,
  ...{ isEmbedded: true, servesRoles: true, version: { value: 'v1.36.3+oarlock' }, servesPolicies: { value: false } },
  ...{ storageClasses: { value: [] }, claims: { value: [] }, nodeLeases: { value: [] }, leader: { value: undefined } },
  podSecurity: { value: new Map([['oarlock-system', undefined]]) },
  endpoints: { value: ['stores', 'join', 'queue'].map(role => ({ role, url: undefined, unreachable: undefined })) },
}
/** `oarlock serve`, with the other roles in processes of their own. */
const apart: ClusterFacts = { ...up, servesRoles: false, leader: healthy.leader, endpoints: healthy.endpoints }

for (const [what, facts] of Object.entries({ 'a cluster': healthy, 'oarlock up': up, 'oarlock serve with roles apart': apart }))
  test(`${what} in which nothing is missing has no warnings and no problems`, () => {
    deepEqual(
      clusterFindings(facts).filter(({ state }) => state !== 'ok'),
      [],
    )
  })

test('the embedded server is not checked for what only a cluster needs', () => {
  const checked = new Set(clusterFindings(up).map(({ what }) => what))
  for (const what of ['storage', 'Pod Security', 'your rights']) ok(!checked.has(what), what)
})

type Case = [string, Partial<ClusterFacts>, string, 'ok' | 'warning' | 'problem', RegExp]
const cases: Case[] = [
  ['a server that is not reached', { version: unknown }, 'server version', 'problem', /^https:\/\/10\.0\.0\.1:6443: this user/],
  ['Kubernetes 1.29', { version: { value: 'v1.29.4' } }, 'server version', 'problem', /^v1\.29\.4 /],
  ['a version without numbers', { version: { value: '' } }, 'server version', 'problem', /^unknown /],
  [
    'a skew that the uncertainty explains',
    { clock: clock(-2_500) },
    'clock',
    'ok',
    /^the API server is 2\.5 s behind this machine \(± 600 ms\)$/,
  ],
  ['a skew above 2 s', { clock: clock(2_700) }, 'clock', 'problem', /2\.7 s ahead of this machine/],
  ['a server without Date header', { clock: { unknown: 'no Date header' } }, 'clock', 'warning', /^not known: no Date header$/],
  ['a leader, by an unknown clock', { clock: { unknown: 'no Date header' } }, 'controllers', 'warning', /^not known: /],
  ['newer CRDs', { crds: { value: { kind: 'newer', text: 'has newer CRDs' } } }, 'CRDs', 'warning', /^the server has newer CRDs$/],
  ['older CRDs', { crds: { value: { kind: 'older', text: 'has CRDs of revision 1' } } }, 'CRDs', 'problem', /revision 1/],
  ['a cluster without policies', { servesPolicies: { value: false } }, 'roles, policies', 'problem', /does not serve/],
  [
    'missing roles',
    { manifests: { value: { ...differences, missing: ['a', 'b', 'c', 'd'] } } },
    'roles, policies',
    'problem',
    /^4 of 60 missing: a, b, c and 1 more$/,
  ],
  ['a changed policy', { manifests: { value: { ...differences, changed: ['P/a'] } } }, 'roles, policies', 'problem', /^1 differ: P\/a$/],
  [
    'a retired role',
    { manifests: { value: { ...differences, retired: ['ClusterRole/x'] } } },
    'roles, policies',
    'problem',
    /^of an earlier version: ClusterRole\/x$/,
  ],
  [
    'a user without rights',
    { installerLacks: { value: ['create deployments.apps'] } },
    'your rights',
    'warning',
    /^you may not: create deployments\.apps$/,
  ],
  [
    'an account without rights',
    { components: { value: [{ name: 'stores', missing: ['get runs', 'x'] }] } },
    'accounts',
    'problem',
    /^oarlock-stores may not get runs and 1 more$/,
  ],
  [
    'an account that is not installed yet',
    { components: { value: [{ name: 'stores', missing: ['x'] }] }, podSecurity: { value: new Map() } },
    'accounts',
    'warning',
    /may not x$/,
  ],
  ['a claim that waits', { claims: { value: [{ name: 'stores', phase: 'Pending' }] } }, 'storage', 'problem', /stores is Pending$/],
  ['a default StorageClass only', { claims: { value: [] } }, 'storage', 'ok', /^default StorageClass fast$/],
  ['neither', { claims: { value: [] }, storageClasses: { value: [] } }, 'storage', 'warning', /^no default StorageClass/],
  [
    'a namespace without label',
    { podSecurity: { value: new Map([['oarlock-system', undefined]]) } },
    'Pod Security',
    'warning',
    /no label$/,
  ],
  ['no namespaces', { podSecurity: { value: new Map() } }, 'Pod Security', 'warning', /do not exist$/],
  [
    'stores without address',
    { endpoints: { value: [{ ...endpoint('stores'), url: undefined }] } },
    'address stores',
    'problem',
    /^not published$/,
  ],
  [
    'a queue without address',
    { endpoints: { value: [{ ...endpoint('queue'), url: undefined }] } },
    'address queue',
    'warning',
    /^not published$/,
  ],
  [
    'an address that is not reached',
    { endpoints: { value: [{ ...endpoint('join'), unreachable: 'ECONNREFUSED' }] } },
    'address join',
    'warning',
    /ECONNREFUSED$/,
  ],
  [
    'an address whose certificate another CA has issued',
    { endpoints: { value: [{ ...endpoint('stores'), hasCa: true, unreachable: 'SELF_SIGNED_CERT_IN_CHAIN' }] } },
    'address stores',
    'problem',
    /^https:\/\/stores has a certificate which is not by the CA in ca\.crt of ConfigMap oarlock-system\/oarlock-endpoint-stores: SELF_SIGNED/,
  ],
  [
    'an address without a published CA',
    { endpoints: { value: [{ ...endpoint('queue'), unreachable: 'DEPTH_ZERO_SELF_SIGNED_CERT' }] } },
    'address queue',
    'problem',
    /by a CA that this machine does not know, and there is no ca\.crt of ConfigMap oarlock-system\/oarlock-endpoint-queue: DEPTH_ZERO/,
  ],
  ['no leader', { leader: { value: undefined } }, 'controllers', 'problem', /^no controller leads$/],
  [
    'a leader that has not renewed',
    { leader: { value: lease('oarlock-controller', 18_000) } },
    'controllers',
    'problem',
    /renewed 18 s ago$/,
  ],
  [
    'a leader whose Lease has just expired',
    { leader: { value: lease('oarlock-controller', 16_000) } },
    'controllers',
    'ok',
    /renewed 16 s ago$/,
  ],
  ['a node whose clock is ahead', { nodeLeases: { value: [lease('n2', -60_000)] } }, 'nodes', 'problem', /^the clock of n2 is 60 s ahead$/],
  [
    'a node that does not renew',
    { nodeLeases: { value: [lease('n2', 41_000, 40_000)] } },
    'nodes',
    'warning',
    /^n2 has not renewed for 41 s$/,
  ],
  ['a worker with a long Lease', { workerLeases: { value: [lease('w', 55_000, 60_000)] } }, 'workers', 'ok', /^1 renew/],
  [
    'a pool without bindings',
    { podBindings: { value: { namespaces: ['shop'], missing: ['RoleBinding shop/x'] } } },
    'worker Pods',
    'problem',
    /^missing or different: RoleBinding shop\/x$/,
  ],
  [
    'a pool that fails',
    { pools: { value: [{ name: 'edge', reason: 'ImagePullFailed', message: 'none' }] } },
    'pool edge',
    'problem',
    /^ImagePullFailed: none$/,
  ],
  [
    'a pool whose Pods fail in one namespace',
    { pools: { value: [{ name: 'edge', reason: 'NamespaceFailing', message: 'Pods do not start in namespace shop: QuotaExceeded: x' }] } },
    'pool edge',
    'problem',
    /^NamespaceFailing: .* namespace shop: QuotaExceeded: x$/,
  ],
  [
    'a token that ends',
    { joinTokens: { value: [{ id: 'a', pool: 'edge', expiresAtMs: nowMs + 60_000 }] } },
    'join tokens',
    'warning',
    /^a of pool edge expires in 60 s$/,
  ],
  [
    'a token that has ended',
    { joinTokens: { value: [{ id: 'a', pool: 'edge', expiresAtMs: nowMs - 7_200_000 }] } },
    'join tokens',
    'warning',
    /expired 2 h ago$/,
  ],
]
for (const [name, facts, what, state, detail] of cases)
  test(`${name}: ${what} is ${state}`, () => {
    const finding = clusterFindings({ ...healthy, ...facts }).find(each => each.what === what)
    deepEqual(finding?.state, state)
    match(finding?.detail ?? '', detail)
    if (state !== 'ok') ok(finding?.needed && finding.fix)
  })

test('missing roles are installed in the way of the server', () => {
  const manifests = { value: { ...differences, missing: ['a'] } }
  const fixOf = (facts: ClusterFacts) => clusterFindings({ ...facts, manifests }).find(({ what }) => what === 'roles, policies')?.fix
  match(fixOf(healthy) ?? '', /helm upgrade --install/)
  match(fixOf(up) ?? '', /^restart oarlock up/)
  match(fixOf(apart) ?? '', /^oarlock manifests --no-policies \| kubectl apply/)
})

for (const [name, facts, what] of [
  ['without a leader', { leader: { value: undefined } }, 'controllers'],
  ['without stores', { endpoints: { value: [{ ...endpoint('stores'), url: undefined }] } }, 'address stores'],
] as const)
  test(`oarlock serve ${name} has a problem, whose fix does not name Pods`, () => {
    const finding = clusterFindings({ ...apart, ...facts }).find(each => each.what === what)
    deepEqual(finding?.state, 'problem')
    ok(!finding?.fix?.includes('kubectl'), finding?.fix ?? '')
  })

test('a fact that is not known is a warning, and never ok', () => {
  const names = ['crds', 'servesPolicies', 'installerLacks', 'components', 'claims', 'podSecurity', 'endpoints', 'leader', 'pools'] as const
  for (const name of names) {
    const details = clusterFindings({ ...healthy, [name]: unknown }).filter(
      ({ detail }) => detail === 'not known: this user may not read it',
    )
    deepEqual([name, details.map(({ state }) => state)], [name, ['warning']])
  }
})

/** A cluster before the installation. */
const empty: ClusterFacts = {
  ...healthy,
  ...{ crds: { value: { kind: 'missing', text: 'lacks the CRDs stacks.oarlock.dev' } }, claims: { value: [] } },
  manifests: { value: { ...differences, missing: Array.from({ length: 60 }, (_, index) => `ClusterRole/${index}`) } },
  components: { value: [{ name: 'stores', missing: ['get runs'] }] },
  podSecurity: { value: new Map() },
  endpoints: { value: ['stores', 'join', 'queue'].map(role => ({ role, url: undefined, unreachable: undefined })) },
  ...{ leader: { value: undefined }, podBindings: unknown, pools: unknown },
}

test('a cluster without Oarlock has one problem, which states how to install it, and the findings that an installation needs', () => {
  const findings = clusterFindings(empty)
  deepEqual(
    findings.map(({ what, state }) => `${what} ${state}`),
    ['server version ok', 'clock ok', 'Oarlock problem', 'your rights ok', 'storage ok', 'nodes ok'],
  )
  const { detail, fix } = findings.find(({ what }) => what === 'Oarlock')!
  match(detail, /^not installed: the server lacks the CRDs stacks\.oarlock\.dev, and 60 of 60 roles, bindings and policies$/)
  match(fix ?? '', /^helm install oarlock .* docs\/install-kubernetes\.md/)
  match(
    clusterFindings({ ...empty, isEmbedded: true }).find(({ what }) => what === 'Oarlock')?.fix ?? '',
    /^oarlock manifests --no-policies/,
  )
})

for (const [name, facts] of [
  ['whose controllers run', { leader: healthy.leader }],
  ['whose stores have an address', { endpoints: healthy.endpoints }],
] as const)
  test(`an installation ${name} and whose CRDs are missing is checked in detail`, () => {
    const whats = clusterFindings({ ...empty, ...facts }).map(({ what }) => what)
    ok(whats.includes('CRDs') && !whats.includes('Oarlock'), whats.join(', '))
  })

test('of a server that is not reached only that is reported, and with an unknown CA where its CA is', () => {
  const crds = { unknown: 'connect ECONNREFUSED' }
  const [finding, ...others] = clusterFindings({ ...healthy, crds, version: { unknown: 'connect ECONNREFUSED' } })
  deepEqual([finding?.what, finding?.fix, others.length], ['server version', 'check --kubeconfig and the network', 0])
  const [untrusted] = clusterFindings({ ...healthy, crds, version: { unknown: 'GET /version: SELF_SIGNED_CERT_IN_CHAIN' } })
  match(untrusted?.fix ?? '', /^set certificate-authority-data .* kube-root-ca\.crt/)
})

test('the fix of a certificate that is not trusted names the file or Secret of the CA', () => {
  const fixOf = (role: string, base: ClusterFacts) => {
    const endpoints = { value: [{ ...endpoint(role), hasCa: true, unreachable: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' }] }
    return clusterFindings({ ...base, endpoints }).find(({ what }) => what === `address ${role}`)?.fix ?? ''
  }
  match(
    fixOf('stores', healthy),
    /^expected: the CA that oarlock stores keeps in its --data, or ca\.crt of Secret oarlock-system\/oarlock-stores-tls/,
  )
  match(fixOf('stores', apart), /or the file of its --tls-ca-file;/)
  match(fixOf('join', healthy), /^expected: the CA that oarlock join-service keeps in its --data; restart/)
  match(fixOf('queue', healthy), /^expected: the CA that oarlock controller keeps in its --data; restart/)
})
