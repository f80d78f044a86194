import { forbiddenField, invalidValue, nameErrors, requiredValue, type StatusCause, unsupportedValue } from '../../../object/index.ts'
import { fieldsOf, itemsOf, textOf } from './checks.ts'
import { ipErrors, isAddress } from './ip-address.ts'
import type { Fields } from './type-rules.ts'

const ingressPath = 'status.loadBalancer.ingress'

function ingressOf(status: unknown): Fields[] {
  return itemsOf(fieldsOf(fieldsOf(status).loadBalancer).ingress)
}

/** Errors of `status.loadBalancer` of an Ingress. Addresses that were stored before are not validated again. */
export function ingressStatusErrors(status: unknown, oldStatus: unknown): StatusCause[] {
  const oldIps = new Set(ingressOf(oldStatus).map(({ ip }) => textOf(ip)))
  return ingressOf(status).flatMap(({ ip, hostname }, index) => [
    ...(oldIps.has(textOf(ip)) || textOf(ip) === '' ? [] : ipErrors(textOf(ip), `${ingressPath}[${index}].ip`)),
    ...hostnameErrors(`${ingressPath}[${index}].hostname`, textOf(hostname)),
  ])
}

/** Errors of `status.loadBalancer` of a Service of type `type`. */
export function serviceStatusErrors(type: unknown, status: unknown, oldStatus: unknown): StatusCause[] {
  const ingress = ingressOf(status)
  if (type !== 'LoadBalancer') {
    return ingress.length === 0 ? [] : [forbiddenField(ingressPath, "may only be used when `spec.type` is 'LoadBalancer'")]
  }
  const oldIps = new Set(ingressOf(oldStatus).map(({ ip }) => textOf(ip)))
  return ingress.flatMap((entry, index) => {
    const entryPath = `${ingressPath}[${index}]`
    const ip = textOf(entry.ip)
    const causes = ip === '' || oldIps.has(ip) ? [] : ipErrors(ip, `${entryPath}.ip`)
    return [
      ...causes,
      ...modeErrors(`${entryPath}.ipMode`, ip, entry.ipMode),
      ...hostnameErrors(`${entryPath}.hostname`, textOf(entry.hostname)),
    ]
  })
}

const modes = ['Proxy', 'VIP']

function modeErrors(path: string, ip: string, mode: unknown): StatusCause[] {
  if (mode === undefined) return ip === '' ? [] : [requiredValue(path, 'must be specified when `ip` is set')]
  if (ip === '') return [forbiddenField(path, 'may not be specified when `ip` is not set')]
  return modes.includes(textOf(mode)) ? [] : [unsupportedValue(path, mode, modes)]
}

function hostnameErrors(path: string, hostname: string): StatusCause[] {
  if (hostname === '') return []
  const causes = nameErrors(hostname, 'dns1123Subdomain').map(reason => invalidValue(path, hostname, reason))
  if (isAddress(hostname)) causes.push(invalidValue(path, hostname, 'must be a DNS name, not an IP address'))
  return causes
}
