import type { ClusterFacts, Known, LeaseFact } from './cluster-facts.ts'
import type { Finding } from './finding.ts'

const minMinor = 30
/** Above this, TokenReviews, certificates and the times of conditions mislead; a request has more uncertainty than most clocks. */
const maxSkewMs = 2_000
const expiringMs = 24 * 3_600_000
/** A kubelet renews every 10 s, a worker more often; the controller of nodes waits 40 s. */
const staleNodeMs = 40_000
const maxNames = 3
const nodeFix = 'check the kubelet and the clock of the node'
/** Codes of Node for a certificate of an authority that is not known. */
const untrusted = /SELF_SIGNED_CERT|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|CERT_UNTRUSTED|CERT_SIGNATURE_FAILURE/
const install = 'oarlock manifests | kubectl apply --server-side -f -, or helm upgrade --install oarlock charts/oarlock -n oarlock-system'

/** How to install what is missing. */
function installOf({ isEmbedded, servesRoles }: ClusterFacts): string {
  if (servesRoles) return 'restart oarlock up: it installs them at its start'
  return isEmbedded ? 'oarlock manifests --no-policies | kubectl apply --server-side -f -' : install
}

/** Whether a cluster has what Oarlock needs. Pure: `facts` has the clock of the server. */
export function clusterFindings(facts: ClusterFacts): Finding[] {
  // Everything else would only be not known, for the same reason.
  if ('unknown' in facts.version && 'unknown' in facts.crds) return [versionFinding(facts)]
  return isInstalled(facts) ? installationFindings(facts) : beforeInstallation(facts)
}

/** Any part: an installation of which something is missing is checked in detail. */
function isInstalled({ crds, leader, endpoints }: ClusterFacts): boolean {
  const hasCrds = !('value' in crds) || crds.value.kind !== 'missing'
  const hasRoles = ('value' in leader && leader.value !== undefined) || ('value' in endpoints && endpoints.value.some(({ url }) => url))
  return hasCrds || hasRoles
}

/** What an installation needs of the cluster. What it would bring is one finding, and not one for each part. */
function beforeInstallation(facts: ClusterFacts): Finding[] {
  const { isEmbedded, servesPolicies, podSecurity } = facts
  const lacksPolicies = !isEmbedded && 'value' in servesPolicies && !servesPolicies.value
  const hasNamespace = 'value' in podSecurity && podSecurity.value.size > 0
  return [
    versionFinding(facts),
    clockFinding(facts),
    ...(lacksPolicies ? [policyFinding(facts)] : []),
    notInstalledFinding(facts),
    ...(isEmbedded ? [] : [installerFinding(facts), storageFinding(facts)]),
    ...(!isEmbedded && hasNamespace ? [podSecurityFinding(facts)] : []),
    leaseFinding('nodes', facts.nodeLeases, facts, nodeFix),
  ]
}

function notInstalledFinding(facts: ClusterFacts): Finding {
  const { crds, manifests } = facts
  const lacks = 'value' in crds ? crds.value.text : ''
  const roles =
    'value' in manifests ? `, and ${manifests.value.missing.length} of ${manifests.value.total} roles, bindings and policies` : ''
  const needed = 'the chart charts/oarlock, or the output of oarlock manifests and the roles as processes of your own'
  const fix = facts.isEmbedded
    ? installOf(facts)
    : 'helm install oarlock charts/oarlock -n oarlock-system --create-namespace --set image.repository=IMAGE --wait; docs/install-kubernetes.md has how to build the image'
  return reportOf('Oarlock', needed).problem(`not installed: the server ${lacks}${roles}`, fix)
}

function installationFindings(facts: ClusterFacts): Finding[] {
  // The embedded server installs itself, keeps its data in its data directory, and runs no Pods of Oarlock.
  const forCluster = facts.isEmbedded ? [] : [installerFinding(facts), storageFinding(facts), podSecurityFinding(facts)]
  return [
    versionFinding(facts),
    clockFinding(facts),
    crdFinding(facts),
    policyFinding(facts),
    accountFinding(facts),
    ...forCluster,
    endpointFindings(facts),
    leaderFinding(facts),
    leaseFinding('nodes', facts.nodeLeases, facts, nodeFix),
    leaseFinding('workers', facts.workerLeases, facts, 'check the clock and the log of the machine of the worker: oarlock get workers'),
    podBindingsFinding(facts),
    poolFindings(facts),
    tokenFinding(facts),
  ].flat()
}

/** The findings of one check: what was found, and how to get what is needed. */
type Report = {
  ok(detail: string): Finding
  warning(detail: string, fix: string): Finding
  problem(detail: string, fix: string): Finding
}

const reportOf = (what: string, needed: string): Report => ({
  ok: detail => ({ what, state: 'ok', detail }),
  warning: (detail, fix) => ({ what, state: 'warning', detail, needed, fix }),
  problem: (detail, fix) => ({ what, state: 'problem', detail, needed, fix }),
})

/** The finding for a fact. One that is not known is a warning: a user who may read it has to check. */
function whenKnown<T, Result extends Finding | Finding[]>(
  what: string,
  needed: string,
  fact: Known<T>,
  decide: (value: T, report: Report) => Result,
): Result | Finding {
  const report = reportOf(what, needed)
  if ('value' in fact) return decide(fact.value, report)
  return report.warning(`not known: ${fact.unknown}`, 'run oarlock doctor as a cluster administrator')
}

function both<A, B>(a: Known<A>, b: Known<B>): Known<readonly [A, B]> {
  if (!('value' in a)) return a
  return 'value' in b ? { value: [a.value, b.value] } : b
}

function versionFinding({ version, server }: ClusterFacts): Finding {
  const report = reportOf('server version', `Kubernetes 1.${minMinor} or later, with ValidatingAdmissionPolicies`)
  if (!('value' in version)) {
    const ca =
      'set certificate-authority-data of the cluster in the kubeconfig to the CA of the API server, which is in ConfigMap kube-root-ca.crt of every namespace'
    return report.problem(`${server}: ${version.unknown}`, untrusted.test(version.unknown) ? ca : 'check --kubeconfig and the network')
  }
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version.value) ?? []
  const isNew = Number(major) > 1 || (Number(major) === 1 && Number(minor) >= minMinor)
  const detail = `${version.value || 'unknown'}  ${server}`
  return isNew ? report.ok(detail) : report.problem(detail, 'upgrade the cluster')
}

function clockFinding({ clock }: ClusterFacts): Finding {
  const needed = `at most ${maxSkewMs / 1_000} s between this machine and the API server`
  return whenKnown('clock', needed, clock, ({ aheadMs, uncertainMs }, report) => {
    const skewMs = Math.max(0, Math.abs(aheadMs) - uncertainMs)
    const text = `the API server is ${formatMs(Math.abs(aheadMs))} ${aheadMs < 0 ? 'behind' : 'ahead of'} this machine (± ${formatMs(uncertainMs)})`
    return skewMs > maxSkewMs ? report.problem(text, 'synchronize both clocks with NTP: timedatectl set-ntp true') : report.ok(text)
  })
}

function crdFinding(facts: ClusterFacts): Finding {
  return whenKnown('CRDs', 'the CRDs of this version of oarlock', facts.crds, ({ kind, text }, report) => {
    const detail = `the server ${text}`
    if (kind === 'current') return report.ok(detail)
    if (kind === 'newer') return report.warning(detail, 'use the version of oarlock that installed them')
    return report.problem(detail, kind === 'missing' ? installOf(facts) : 'oarlock crds upgrade')
  })
}

function policyFinding(facts: ClusterFacts): Finding {
  const { isEmbedded, servesPolicies, manifests } = facts
  const needed = `the roles${isEmbedded ? ' and bindings' : ', bindings and ValidatingAdmissionPolicies'} of this version, unchanged`
  return whenKnown('roles, policies', needed, both(servesPolicies, manifests), ([hasPolicies, differences], report) => {
    const { missing, changed, retired, total } = differences
    if (!hasPolicies && !isEmbedded) {
      const detail = 'the server does not serve admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy'
      return report.problem(detail, 'use Kubernetes 1.30 or later')
    }
    if (missing.length + changed.length + retired.length === 0) {
      const authorizer = isEmbedded ? '; the embedded server needs no policies' : ''
      return report.ok(`${total} objects are installed and current${authorizer}`)
    }
    const parts = [
      ...(missing.length > 0 ? [`${missing.length} of ${total} missing: ${some(missing)}`] : []),
      ...(changed.length > 0 ? [`${changed.length} differ: ${some(changed)}`] : []),
      ...(retired.length > 0 ? [`of an earlier version: ${some(retired)}`] : []),
    ]
    return report.problem(parts.join('; '), retired.length > 0 ? `kubectl delete ${retired.join(' ').toLowerCase()}` : installOf(facts))
  })
}

function installerFinding({ installerLacks }: ClusterFacts): Finding {
  const needed = 'to install or upgrade: create and patch what oarlock manifests prints and the objects of the chart'
  return whenKnown('your rights', needed, installerLacks, (lacks, report) =>
    lacks.length === 0
      ? report.ok('you may install and upgrade')
      : report.warning(`you may not: ${some(lacks)}`, 'install as a cluster administrator (ClusterRole cluster-admin)'),
  )
}

function accountFinding(facts: ClusterFacts): Finding {
  const { components, podSecurity } = facts
  return whenKnown('accounts', 'each ServiceAccount of Oarlock has the rights of its role', components, (accounts, report) => {
    const lacking = accounts.filter(({ missing }) => missing.length > 0)
    if (lacking.length === 0) return report.ok(`${accounts.map(({ name }) => name).join(', ')} have their rights`)
    const isInstalled = 'value' in podSecurity && podSecurity.value.has('oarlock-system')
    const texts = lacking.map(
      ({ name, missing }) => `oarlock-${name} may not ${missing[0]}${missing.length > 1 ? ` and ${missing.length - 1} more` : ''}`,
    )
    const fix = installOf(facts)
    return isInstalled ? report.problem(texts.join('; '), fix) : report.warning(texts.join('; '), fix)
  })
}

function storageFinding({ storageClasses, claims }: ClusterFacts): Finding {
  const needed = 'a bound volume for the stores, or a default StorageClass for a new one'
  return whenKnown('storage', needed, both(claims, storageClasses), ([existing, classes], report) => {
    const unbound = existing.filter(({ phase }) => phase !== 'Bound')
    const fix =
      'install a provisioner and mark its class: kubectl annotate storageclass NAME storageclass.kubernetes.io/is-default-class=true'
    if (unbound.length > 0) {
      const detail = unbound.map(({ name, phase }) => `claim oarlock-system/${name} is ${phase}`).join('; ')
      return report.problem(detail, `kubectl describe pvc -n oarlock-system ${unbound[0]!.name}; ${fix}`)
    }
    if (existing.length > 0) return report.ok(`${existing.length} claims in oarlock-system are bound`)
    const defaults = classes.filter(({ isDefault }) => isDefault)
    if (defaults.length > 0) return report.ok(`default StorageClass ${defaults.map(({ name }) => name).join(', ')}`)
    return report.warning('no default StorageClass, and no claim in oarlock-system', fix)
  })
}

function podSecurityFinding({ podSecurity }: ClusterFacts): Finding {
  const needed = 'label pod-security.kubernetes.io/enforce=restricted on oarlock-system and oarlock-workers'
  return whenKnown('Pod Security', needed, podSecurity, (levels, report) => {
    if (levels.size === 0) return report.warning('the namespaces of Oarlock do not exist', install)
    const text = [...levels].map(([name, level]) => `${name}: ${level ?? 'no label'}`).join(', ')
    const weak = [...levels].filter(([, level]) => level !== 'restricted').map(([name]) => name)
    if (weak.length === 0) return report.ok(text)
    return report.warning(text, `kubectl label namespace ${weak.join(' ')} pod-security.kubernetes.io/enforce=restricted`)
  })
}

const servedBy = { stores: 'oarlock stores', join: 'oarlock join-service', queue: 'oarlock controller' } as Record<string, string>

/** Where the CA of a role comes from, which it publishes at its start. */
function caFix(role: string, isEmbedded: boolean): string {
  const own = `the CA that ${servedBy[role]} keeps in its --data`
  const file = isEmbedded
    ? 'the file of its --tls-ca-file'
    : 'ca.crt of Secret oarlock-system/oarlock-stores-tls (stores.certificate.mode CertManager)'
  const expected = role === 'stores' ? `${own}, or ${file}` : own
  return `expected: ${expected}; restart ${servedBy[role]}, which publishes it, and look for a proxy in between`
}

function endpointFindings({ endpoints, servesRoles, server, isEmbedded }: ClusterFacts): Finding | Finding[] {
  const needed = 'each role publishes an address that workers and users reach'
  if (servesRoles) return reportOf('addresses', needed).ok(`the server has all roles: ${server}`)
  const look = isEmbedded ? '' : ': kubectl get pods -n oarlock-system'
  return whenKnown('addresses', needed, endpoints, found =>
    found.map(({ role, url, hasCa, unreachable }) => {
      const report = reportOf(`address ${role}`, needed)
      if (url === undefined) {
        const fix = `start ${servedBy[role]}${look}`
        return role === 'stores' ? report.problem('not published', fix) : report.warning('not published', fix)
      }
      if (unreachable === undefined) return report.ok(url)
      if (untrusted.test(unreachable)) {
        const published = `ca.crt of ConfigMap oarlock-system/oarlock-endpoint-${role}`
        const expected = hasCa
          ? `which is not by the CA in ${published}`
          : `by a CA that this machine does not know, and there is no ${published}`
        return report.problem(`${url} has a certificate ${expected}: ${unreachable}`, caFix(role, isEmbedded))
      }
      const fix =
        'an address in the cluster is not reached from outside; for Pods that do not reach it either, check Service and NetworkPolicy'
      return report.warning(`${url} is not reached from here: ${unreachable}`, fix)
    }),
  )
}

function leaderFinding({ leader, clock, servesRoles, isEmbedded }: ClusterFacts): Finding {
  const what = 'controllers'
  const needed = 'a controller that renews the Lease oarlock-system/oarlock-controller'
  if (servesRoles) return reportOf(what, needed).ok('they run in the process of the server, without a Lease')
  const fix = isEmbedded
    ? 'start oarlock controller, and read its log'
    : 'kubectl get pods -n oarlock-system, and the log of oarlock controller'
  return whenKnown(what, needed, both(leader, clock), ([lease, { serverNowMs }], report) => {
    if (!lease) return report.problem('no controller leads', fix)
    const ageMs = serverNowMs - lease.renewedAtMs
    const text = `${lease.holder} leads, renewed ${formatMs(Math.max(0, ageMs))} ago`
    return ageMs > lease.durationMs + maxSkewMs ? report.problem(text, fix) : report.ok(text)
  })
}

/** A renewal in the future shows a clock that is ahead; an old one shows a clock that is behind, or that nothing renews. */
function leaseFinding(what: string, leases: Known<readonly LeaseFact[]>, { clock }: ClusterFacts, fix: string): Finding {
  const needed = `every Lease is renewed in time, by a clock at most ${maxSkewMs / 1_000} s from that of the API server`
  return whenKnown(what, needed, both(leases, clock), ([found, { serverNowMs }], report) => {
    const ages = found.map(({ name, renewedAtMs, durationMs }) => ({ name, ageMs: serverNowMs - renewedAtMs, durationMs }))
    // The clock of the server is known to the second.
    const ahead = ages.filter(({ ageMs }) => ageMs < -maxSkewMs - 1_000)
    const stale = ages.filter(({ ageMs, durationMs }) => ageMs > Math.max(durationMs, staleNodeMs))
    if (found.length === 0) return report.ok('no Leases')
    if (ahead.length + stale.length === 0) return report.ok(`${found.length} renew their Leases`)
    const parts = [
      ...ahead.map(({ name, ageMs }) => `the clock of ${name} is ${formatMs(-ageMs)} ahead`),
      ...stale.map(({ name, ageMs }) => `${name} has not renewed for ${formatMs(ageMs)}`),
    ]
    return ahead.length > 0 ? report.problem(some(parts, '; '), fix) : report.warning(some(parts, '; '), fix)
  })
}

function podBindingsFinding({ podBindings }: ClusterFacts): Finding {
  const needed = 'ServiceAccount and bindings of worker Pods in the namespaces of pools, and of Stacks whose pool has podNamespace Stack'
  return whenKnown('worker Pods', needed, podBindings, ({ namespaces, missing }, report) => {
    if (namespaces.length === 0) return report.ok('no pool has Pods in a namespace of its own, or in that of a Stack')
    if (missing.length === 0) return report.ok(`bound in ${some(namespaces)}`)
    return report.problem(`missing or different: ${some(missing)}`, 'docs/kubernetes.md, "Worker Pods", has the commands for a namespace')
  })
}

function poolFindings({ pools }: ClusterFacts): Finding | Finding[] {
  const needed = 'pools whose workers start'
  return whenKnown('pools', needed, pools, (all, report) => {
    const failing = all.filter(({ reason }) => reason !== '')
    if (failing.length === 0) return [report.ok(all.length === 0 ? 'none' : `${all.length} without failures`)]
    return failing.map(({ name, reason, message }) =>
      reportOf(`pool ${name}`, needed).problem(`${reason}: ${message}`, `oarlock describe workerpool ${name}`),
    )
  })
}

function tokenFinding({ joinTokens, clock }: ClusterFacts): Finding {
  const needed = 'tokens that are valid while workers join with them'
  return whenKnown('join tokens', needed, both(joinTokens, clock), ([tokens, { serverNowMs }], report) => {
    const ending = tokens.filter(({ expiresAtMs }) => expiresAtMs - serverNowMs < expiringMs)
    if (tokens.length === 0) return report.ok('none')
    if (ending.length === 0) return report.ok(`${tokens.length} valid for more than a day`)
    const texts = ending.map(({ id, pool, expiresAtMs }) => {
      const leftMs = expiresAtMs - serverNowMs
      return `${id} of pool ${pool} ${leftMs > 0 ? `expires in ${formatMs(leftMs)}` : `expired ${formatMs(-leftMs)} ago`}`
    })
    return report.warning(some(texts, '; '), `oarlock token create --pool ${ending[0]!.pool}`)
  })
}

function some(names: readonly string[], separator = ', '): string {
  const more = names.length - maxNames
  return names.slice(0, maxNames).join(separator) + (more > 0 ? ` and ${more} more` : '')
}

function formatMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 120_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`
  if (ms < 2 * 3_600_000) return `${Math.round(ms / 60_000)} min`
  return `${Math.round(ms / 3_600_000)} h`
}
