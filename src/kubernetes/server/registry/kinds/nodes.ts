import {
  duplicateValue,
  forbiddenField,
  invalidValue,
  type KubeObject,
  labelValueErrors,
  qualifiedNameErrors,
  requiredValue,
  type StatusCause,
  unsupportedValue,
} from '../../../object/index.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { cidrErrors, fieldsOf, itemsOf, textOf, textsOf } from '../type-rules/index.ts'
import { textAt } from './column-values.ts'
import type { KindDeclaration } from './kind-declaration.ts'

const addressesText =
  "List of addresses reachable to the node. Queried from cloud provider, if available. More info: https://kubernetes.io/docs/reference/node/node-status/#addresses Note: This field is declared as mergeable, but the merge key is not sufficiently unique, which can cause data corruption when it is merged. Callers should instead use a full-replacement patch. See https://pr.k8s.io/79391 for an example. Consumers should assume that addresses can change during the lifetime of a Node. However, there are some exceptions where this may not be possible, such as Pods that inherit a Node's address in its own status or consumers of the downward API (status.hostIP)."

export const nodeKinds: readonly KindDeclaration[] = [
  {
    kind: 'Node',
    plural: 'nodes',
    shortNames: ['no'],
    cluster: true,
    typeName: 'io.k8s.api.core.v1.Node',
    hasStatus: true,
    columns: [
      nameColumn,
      column('Status', 'The status of the node', nodeStatus),
      column('Roles', 'The roles of the node', ({ metadata }) => roles(metadata.labels ?? {}).join(',') || '<none>'),
      ageColumn,
      column('Version', 'Kubelet Version reported by the node.', node => textAt(node, 'status.nodeInfo.kubeletVersion', '')),
      column('Internal-IP', addressesText, node => address(node, 'InternalIP'), 1),
      column('External-IP', addressesText, node => address(node, 'ExternalIP'), 1),
      column(
        'OS-Image',
        'OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux 7 (wheezy)).',
        node => info(node, 'osImage'),
        1,
      ),
      column(
        'Kernel-Version',
        "Kernel Version reported by the node from 'uname -r' (e.g. 3.16.0-0.bpo.4-amd64).",
        node => {
          const architecture = textAt(node, 'status.nodeInfo.architecture', '')
          return info(node, 'kernelVersion') + (architecture && ` (${architecture})`)
        },
        1,
      ),
      column(
        'Container-Runtime',
        'ContainerRuntime Version reported by the node through runtime remote API (e.g. containerd://1.4.2).',
        node => info(node, 'containerRuntimeVersion'),
        1,
      ),
    ],
    selectableFields: [{ field: 'spec.unschedulable', read: ({ spec }) => String(fieldsOf(spec).unschedulable === true) }],
    validate: validateNode,
    warnings: ({ spec }) => {
      const { configSource, externalID } = fieldsOf(spec)
      const warnings = configSource === undefined ? [] : ['spec.configSource: the feature is removed']
      return externalID === undefined ? warnings : [...warnings, 'spec.externalID: this field is deprecated, and is unused by Kubernetes']
    },
  },
]

function nodeStatus({ spec, status }: KubeObject): string {
  const ready = itemsOf(fieldsOf(status).conditions).find(({ type }) => type === 'Ready')
  const readiness = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady'
  return fieldsOf(spec).unschedulable === true ? `${readiness},SchedulingDisabled` : readiness
}

const rolePrefix = 'node-role.kubernetes.io/'

function roles(labels: Record<string, string>): string[] {
  const found = Object.keys(labels).flatMap(key => (key.startsWith(rolePrefix) ? key.slice(rolePrefix.length) : []))
  const { 'kubernetes.io/role': other } = labels
  return [...new Set([...found, other ?? ''].filter(Boolean))].sort()
}

function address({ status }: KubeObject, type: string): string {
  return textOf(itemsOf(fieldsOf(status).addresses).find(item => item.type === type)?.address) || '<none>'
}

const info = (node: KubeObject, field: string) => textAt(node, `status.nodeInfo.${field}`, '') || '<unknown>'

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

function validateNode({ spec, status }: KubeObject, oldNode: KubeObject | undefined): StatusCause[] {
  const fields = fieldsOf(spec)
  const causes = [
    ...taintErrors(fields.taints),
    ...textsOf(fields.podCIDRs).flatMap((range, index) => cidrErrors(range, `spec.podCIDRs[${index}]`)),
  ]
  const seen = new Set<string>()
  itemsOf(fieldsOf(status).addresses).forEach((item, index) => {
    const id = `${item.type}/${item.address}`
    if (seen.has(id)) causes.push(duplicateValue(`status.addresses[${index}]`, { Type: item.type, Address: item.address }))
    seen.add(id)
  })
  if (!oldNode) return causes
  const oldSpec = fieldsOf(oldNode.spec)
  const [ranges, oldRanges] = [textsOf(fields.podCIDRs), textsOf(oldSpec.podCIDRs)]
  const isChanged =
    oldRanges.length > 0 && (ranges.length !== oldRanges.length || ranges.some((range, index) => range !== oldRanges[index]))
  if (isChanged) causes.push(forbiddenField('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'))
  if (textOf(oldSpec.providerID) !== '' && oldSpec.providerID !== fields.providerID) {
    causes.push(forbiddenField('spec.providerID', 'node updates may not change providerID except from "" to valid'))
  }
  return causes
}

// Kubernetes reports the path in the metadata.
function taintErrors(taints: unknown): StatusCause[] {
  const seen = new Set<string>()
  return itemsOf(taints).flatMap(({ key, value, effect }, index) => {
    const itemPath = `metadata.taints[${index}]`
    const causes = qualifiedNameErrors(textOf(key)).map(reason => invalidValue(`${itemPath}.key`, textOf(key), reason))
    const reasons = labelValueErrors(textOf(value))
    if (reasons.length > 0) causes.push(invalidValue(`${itemPath}.value`, value, reasons.join(';')))
    if (textOf(effect) === '') causes.push(requiredValue(`${itemPath}.effect`))
    else if (!effects.includes(textOf(effect))) causes.push(unsupportedValue(`${itemPath}.effect`, effect, effects))
    const id = `${key}:${effect}`
    if (seen.has(id)) {
      const duplicate = duplicateValue(itemPath, { Key: textOf(key), Value: textOf(value), Effect: textOf(effect), TimeAdded: null })
      causes.push({ ...duplicate, message: `${duplicate.message}: taints must be unique by key and effect pair` })
    }
    seen.add(id)
    return causes
  })
}
