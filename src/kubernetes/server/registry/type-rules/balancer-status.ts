import { forbiddenField, invalidValue, nameErrors, requiredValue, type StatusCause, unsupportedValue } from '../../../object/index.ts'
import { fieldsOf, itemsOf, textOf } from './checks.ts'
import { ipErrors, isAddress } from './ip-address.ts'
import type { Fields } from './type-rules.ts'

const path = 'status.loadBalancer.ingress'

function pointsOf(status: unknown): Fields[] {
  return itemsOf(fieldsOf(fieldsOf(status).loadBalancer).ingress)
}

/** Errors of `status.loadBalancer` of an Ingress. Addresses that were stored before are not validated again. */
export function ingressStatusErrors(status: unknown, before: unknown): StatusCause[] {
  const known = new Set(pointsOf(before).map(({ ip }) => textOf(ip)))
  return pointsOf(status).flatMap(({ ip, hostname }, index) => [
    ...(known.has(textOf(ip)) || textOf(ip) === '' ? [] : ipErrors(textOf(ip), `${path}[${index}].ip`)),
    ...hostnameErrors(`${path}[${index}].hostname`, textOf(hostname)),
  ])
}

/** Errors of `status.loadBalancer` of a Service of type `type`. */
export function serviceStatusErrors(type: unknown, status: unknown, before: unknown): StatusCause[] {
  const points = pointsOf(status)
  if (type !== 'LoadBalancer') {
    return points.length === 0 ? [] : [forbiddenField(path, "may only be used when `spec.type` is 'LoadBalancer'")]
  }
  const known = new Set(pointsOf(before).map(({ ip }) => textOf(ip)))
  return points.flatMap((point, index) => {
    const at = `${path}[${index}]`
    const ip = textOf(point.ip)
    const causes = ip === '' || known.has(ip) ? [] : ipErrors(ip, `${at}.ip`)
    return [...causes, ...modeErrors(`${at}.ipMode`, ip, point.ipMode), ...hostnameErrors(`${at}.hostname`, textOf(point.hostname))]
  })
}

const modes = ['Proxy', 'VIP']

function modeErrors(at: string, ip: string, mode: unknown): StatusCause[] {
  if (mode === undefined) return ip === '' ? [] : [requiredValue(at, 'must be specified when `ip` is set')]
  if (ip === '') return [forbiddenField(at, 'may not be specified when `ip` is not set')]
  return modes.includes(textOf(mode)) ? [] : [unsupportedValue(at, mode, modes)]
}

function hostnameErrors(at: string, hostname: string): StatusCause[] {
  if (hostname === '') return []
  const causes = nameErrors(hostname, 'dns1123Subdomain').map(reason => invalidValue(at, hostname, reason))
  if (isAddress(hostname)) causes.push(invalidValue(at, hostname, 'must be a DNS name, not an IP address'))
  return causes
}
