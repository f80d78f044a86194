import type { ClusterFacts, Known, LeaseFact } from './cluster-facts.ts'
import type { Finding } from './finding.ts'

const minMinor = 30
/** Above this, TokenReviews, certificates and the times of conditions mislead; a request has more uncertainty than most clocks. */
const maxSkewMs = 2_000
const expiringMs = 24 * 3_600_000
/** A kubelet renews every 10 s, a worker more often; the controller of nodes waits 40 s. */
const staleNodeMs = 40_000
const maxNames = 3
const install = 'oarlock manifests | kubectl apply --server-side -f -, or helm upgrade --install oarlock charts/oarlock'

/** Whether a cluster has what Oarlock needs. Pure: `facts` has the clock of the server. */
export function clusterFindings(facts: ClusterFacts): Finding[] {
  return [
    versionFinding(facts),
    clockFinding(facts),
    crdFinding(facts),
    policyFinding(facts),
    installerFinding(facts),
    accountFinding(facts),
    storageFinding(facts),
    podSecurityFinding(facts),
    ...endpointFindings(facts),
    leaderFinding(facts),
    leaseFinding('nodes', facts.nodeLeases, facts, 'check the kubelet and the clock of the node'),
    leaseFinding('workers', facts.workerLeases, facts, 'check the clock and the log of the machine of the worker: oarlock get workers'),
    podBindingsFinding(facts),
    ...poolFindings(facts),
    tokenFinding(facts),
  ]
}

const ok = (what: string, detail: string): Finding => ({ what, state: 'ok', detail })
const bad = (what: string, state: 'warning' | 'problem', detail: string, needed: string, fix: string): Finding => ({
  what,
  state,
  detail,
  needed,
  fix,
})

/** The finding for a fact that is not known: a user who may read it has to check. */
function unknown<T>(what: string, fact: Known<T>, needed: string): Finding | undefined {
  if ('value' in fact) return undefined
  return bad(what, 'warning', `not known: ${fact.unknown}`, needed, 'run oarlock doctor as a cluster administrator')
}

function factOf<T>(fact: Known<T>): T {
  if ('value' in fact) return fact.value
  throw new TypeError('the fact is not known')
}

function versionFinding({ version, server }: ClusterFacts): Finding {
  const what = 'server version'
  const needed = `Kubernetes 1.${minMinor} or later, with ValidatingAdmissionPolicies`
  if (!('value' in version)) return bad(what, 'problem', `${server}: ${version.unknown}`, needed, 'check --kubeconfig and the network')
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version.value) ?? []
  const isNew = Number(major) > 1 || (Number(major) === 1 && Number(minor) >= minMinor)
  return isNew
    ? ok(what, `${version.value}  ${server}`)
    : bad(what, 'problem', `${version.value || 'unknown'}  ${server}`, needed, 'upgrade the cluster')
}

function clockFinding({ clock }: ClusterFacts): Finding {
  const what = 'clock'
  const needed = `at most ${maxSkewMs / 1_000} s between this machine and the API server`
  const failed = unknown(what, clock, needed)
  if (failed) return failed
  const { aheadMs, uncertainMs } = factOf(clock)
  const skewMs = Math.max(0, Math.abs(aheadMs) - uncertainMs)
  const text = `the API server is ${formatMs(Math.abs(aheadMs))} ${aheadMs < 0 ? 'behind' : 'ahead of'} this machine (± ${formatMs(uncertainMs)})`
  return skewMs > maxSkewMs
    ? bad(what, 'problem', text, needed, 'synchronize both clocks with NTP: timedatectl set-ntp true')
    : ok(what, text)
}

function crdFinding({ crds }: ClusterFacts): Finding {
  const what = 'CRDs'
  const needed = 'the CRDs of this version of oarlock'
  const failed = unknown(what, crds, needed)
  if (failed) return failed
  const { kind, text } = factOf(crds)
  const detail = `the server ${text}`
  if (kind === 'current') return ok(what, detail)
  if (kind === 'newer') return bad(what, 'warning', detail, needed, 'use the version of oarlock that installed them')
  return bad(what, 'problem', detail, needed, kind === 'missing' ? install : 'oarlock crds upgrade')
}

function policyFinding({ servesPolicies, manifests }: ClusterFacts): Finding {
  const what = 'roles, policies'
  const needed = 'the roles, bindings and ValidatingAdmissionPolicies of this version, unchanged'
  const failed = unknown(what, servesPolicies, needed) ?? unknown(what, manifests, needed)
  if (failed) return failed
  const { missing, changed, retired, total } = factOf(manifests)
  if (!factOf(servesPolicies)) {
    const detail = 'the server does not serve admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy'
    return bad(what, 'problem', detail, needed, 'use Kubernetes 1.30 or later; the embedded server needs none')
  }
  if (missing.length + changed.length + retired.length === 0) return ok(what, `${total} objects are installed and current`)
  const parts = [
    ...(missing.length > 0 ? [`${missing.length} of ${total} missing: ${some(missing)}`] : []),
    ...(changed.length > 0 ? [`${changed.length} differ: ${some(changed)}`] : []),
    ...(retired.length > 0 ? [`of an earlier version: ${some(retired)}`] : []),
  ]
  const fix = retired.length > 0 ? `kubectl delete ${retired.join(' ').toLowerCase()}` : install
  return bad(what, 'problem', parts.join('; '), needed, fix)
}

function installerFinding({ installerLacks }: ClusterFacts): Finding {
  const what = 'your rights'
  const needed = 'to install or upgrade: create and patch what oarlock manifests prints'
  const failed = unknown(what, installerLacks, needed)
  if (failed) return failed
  const lacks = factOf(installerLacks)
  if (lacks.length === 0) return ok(what, 'you may install and upgrade')
  return bad(what, 'warning', `you may not: ${some(lacks)}`, needed, 'install as a cluster administrator (ClusterRole cluster-admin)')
}

function accountFinding({ components, podSecurity }: ClusterFacts): Finding {
  const what = 'accounts'
  const needed = 'each ServiceAccount of Oarlock has the rights of its role'
  const failed = unknown(what, components, needed)
  if (failed) return failed
  const lacking = factOf(components).filter(({ missing }) => missing.length > 0)
  if (lacking.length === 0)
    return ok(
      what,
      `${factOf(components)
        .map(({ name }) => name)
        .join(', ')} have their rights`,
    )
  const isInstalled = 'value' in podSecurity && podSecurity.value.has('oarlock-system')
  const text = lacking.map(
    ({ name, missing }) => `oarlock-${name} may not ${missing[0]}${missing.length > 1 ? ` and ${missing.length - 1} more` : ''}`,
  )
  return bad(what, isInstalled ? 'problem' : 'warning', text.join('; '), needed, install)
}

function storageFinding({ storageClasses, claims }: ClusterFacts): Finding {
  const what = 'storage'
  const needed = 'a bound volume for the stores, or a default StorageClass for a new one'
  const failed = unknown(what, claims, needed) ?? unknown(what, storageClasses, needed)
  if (failed) return failed
  const unbound = factOf(claims).filter(({ phase }) => phase !== 'Bound')
  const fix =
    'install a provisioner and mark its class: kubectl annotate storageclass NAME storageclass.kubernetes.io/is-default-class=true'
  if (unbound.length > 0) {
    const detail = unbound.map(({ name, phase }) => `claim oarlock-system/${name} is ${phase}`).join('; ')
    return bad(what, 'problem', detail, needed, `kubectl describe pvc -n oarlock-system ${unbound[0]!.name}; ${fix}`)
  }
  const defaults = factOf(storageClasses).filter(({ isDefault }) => isDefault)
  if (factOf(claims).length > 0) return ok(what, `${factOf(claims).length} claims in oarlock-system are bound`)
  if (defaults.length > 0) return ok(what, `default StorageClass ${defaults.map(({ name }) => name).join(', ')}`)
  return bad(what, 'warning', 'no default StorageClass, and no claim in oarlock-system', needed, fix)
}

function podSecurityFinding({ podSecurity }: ClusterFacts): Finding {
  const what = 'Pod Security'
  const needed = 'label pod-security.kubernetes.io/enforce=restricted on oarlock-system and oarlock-workers'
  const failed = unknown(what, podSecurity, needed)
  if (failed) return failed
  const levels = factOf(podSecurity)
  if (levels.size === 0) return bad(what, 'warning', 'the namespaces of Oarlock do not exist', needed, install)
  const text = [...levels].map(([name, level]) => `${name}: ${level ?? 'no label'}`).join(', ')
  const weak = [...levels].filter(([, level]) => level !== 'restricted').map(([name]) => name)
  if (weak.length === 0) return ok(what, text)
  return bad(what, 'warning', text, needed, `kubectl label namespace ${weak.join(' ')} pod-security.kubernetes.io/enforce=restricted`)
}

const servedBy = { stores: 'oarlock stores', join: 'oarlock join-service', queue: 'oarlock controller' } as Record<string, string>

function endpointFindings({ endpoints }: ClusterFacts): Finding[] {
  const needed = 'each role publishes an address that workers and users reach'
  const failed = unknown('addresses', endpoints, needed)
  if (failed) return [failed]
  return factOf(endpoints).map(({ role, url, unreachable }) => {
    const what = `address ${role}`
    if (url === undefined) {
      const fix = `start ${servedBy[role]}: kubectl get pods -n oarlock-system`
      return bad(what, role === 'stores' ? 'problem' : 'warning', 'not published', needed, fix)
    }
    if (unreachable === undefined) return ok(what, url)
    const fix = 'an address in the cluster is not reached from outside: run oarlock doctor in a Pod, or check Service and NetworkPolicy'
    return bad(what, 'warning', `${url} is not reached from here: ${unreachable}`, needed, fix)
  })
}

function leaderFinding({ leader, clock }: ClusterFacts): Finding {
  const what = 'controllers'
  const needed = 'a controller that renews the Lease oarlock-system/oarlock-controller'
  const failed = unknown(what, leader, needed) ?? unknown(what, clock, needed)
  if (failed) return failed
  const lease = factOf(leader)
  const fix = 'kubectl get pods -n oarlock-system, and the log of oarlock controller'
  if (!lease) return bad(what, 'problem', 'no controller leads', needed, fix)
  const ageMs = factOf(clock).serverNowMs - lease.renewedAtMs
  const text = `${lease.holder} leads, renewed ${formatMs(Math.max(0, ageMs))} ago`
  return ageMs > lease.durationMs + maxSkewMs ? bad(what, 'problem', text, needed, fix) : ok(what, text)
}

/** A renewal in the future shows a clock that is ahead; an old one shows a clock that is behind, or that nothing renews. */
function leaseFinding(what: string, leases: Known<readonly LeaseFact[]>, { clock }: ClusterFacts, fix: string): Finding {
  const needed = `every Lease is renewed in time, by a clock at most ${maxSkewMs / 1_000} s from that of the API server`
  const failed = unknown(what, leases, needed) ?? unknown(what, clock, needed)
  if (failed) return failed
  const { serverNowMs } = factOf(clock)
  const found = factOf(leases)
  const ages = found.map(({ name, renewedAtMs, durationMs }) => ({ name, ageMs: serverNowMs - renewedAtMs, durationMs }))
  // The clock of the server is known to the second.
  const ahead = ages.filter(({ ageMs }) => ageMs < -maxSkewMs - 1_000)
  const stale = ages.filter(({ ageMs, durationMs }) => ageMs > Math.max(durationMs, staleNodeMs))
  if (found.length === 0) return ok(what, 'no Leases')
  if (ahead.length + stale.length === 0) return ok(what, `${found.length} renew their Leases`)
  const parts = [
    ...ahead.map(({ name, ageMs }) => `the clock of ${name} is ${formatMs(-ageMs)} ahead`),
    ...stale.map(({ name, ageMs }) => `${name} has not renewed for ${formatMs(ageMs)}`),
  ]
  return bad(what, ahead.length > 0 ? 'problem' : 'warning', some(parts, '; '), needed, fix)
}

function podBindingsFinding({ podBindings }: ClusterFacts): Finding {
  const what = 'worker Pods'
  const needed = 'the bindings of worker Pods in the namespace of each pool'
  const failed = unknown(what, podBindings, needed)
  if (failed) return failed
  const { namespaces, missing } = factOf(podBindings)
  if (namespaces.length === 0) return ok(what, 'no pool has Pods in a namespace of its own')
  if (missing.length === 0) return ok(what, `bound in ${some(namespaces)}`)
  return bad(what, 'problem', `missing: ${some(missing)}`, needed, 'docs/kubernetes.md, "Worker Pods", has the bindings of a namespace')
}

function poolFindings({ pools }: ClusterFacts): Finding[] {
  const needed = 'pools whose workers start'
  const failed = unknown('pools', pools, needed)
  if (failed) return [failed]
  const failing = factOf(pools).filter(({ reason }) => reason !== '')
  if (failing.length === 0) return [ok('pools', factOf(pools).length === 0 ? 'none' : `${factOf(pools).length} without failures`)]
  return failing.map(({ name, reason, message }) =>
    bad(`pool ${name}`, 'problem', `${reason}: ${message}`, needed, `oarlock describe workerpool ${name}`),
  )
}

function tokenFinding({ joinTokens, clock }: ClusterFacts): Finding {
  const what = 'join tokens'
  const needed = 'tokens that are valid while workers join with them'
  const failed = unknown(what, joinTokens, needed) ?? unknown(what, clock, needed)
  if (failed) return failed
  const tokens = factOf(joinTokens)
  const { serverNowMs } = factOf(clock)
  const ending = tokens.filter(({ expiresAtMs }) => expiresAtMs - serverNowMs < expiringMs)
  if (tokens.length === 0) return ok(what, 'none')
  if (ending.length === 0) return ok(what, `${tokens.length} valid for more than a day`)
  const texts = ending.map(({ id, pool, expiresAtMs }) => {
    const leftMs = expiresAtMs - serverNowMs
    return `${id} of pool ${pool} ${leftMs > 0 ? `expires in ${formatMs(leftMs)}` : `expired ${formatMs(-leftMs)} ago`}`
  })
  return bad(what, 'warning', some(texts, '; '), needed, `oarlock token create --pool ${ending[0]!.pool}`)
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
