import { readFileSync } from 'node:fs'
import type { Log } from '../../util/index.ts'
import { ServerStartError } from '../storage/index.ts'
import { AuditLog, type AuditLogOptions } from './audit-log.ts'
import { Auditor } from './auditor.ts'
import { type AuditPolicy, defaultPolicy, parsePolicy } from './policy.ts'

export type AuditOptions = Omit<AuditLogOptions, 'log'> & {
  /** A Policy of audit.k8s.io/v1. Default: metadata of writes. */
  policyFile?: string | undefined
}

export type Audit = { readonly auditor: Auditor; readonly log: AuditLog }

/**
 * @param parse reads YAML.
 * @throws {ServerStartError} AuditInvalid, with the flag to change.
 */
export function openAudit({ policyFile, ...options }: AuditOptions, parse: (text: string) => unknown, log: Log): Audit {
  const policy = policyFile === undefined ? defaultPolicy : readPolicy(policyFile, parse)
  try {
    const auditLog = new AuditLog({ ...options, log })
    return { auditor: new Auditor(policy, auditLog), log: auditLog }
  } catch (cause) {
    const reason = (cause as Error).message
    throw new ServerStartError(
      'AuditInvalid',
      `the audit log ${options.path} cannot be written (${reason}): choose another with --audit-log-path`,
      { cause },
    )
  }
}

function readPolicy(path: string, parse: (text: string) => unknown): AuditPolicy {
  try {
    return parsePolicy(parse(readFileSync(path, 'utf8')))
  } catch (cause) {
    const reason = (cause as Error).message
    throw new ServerStartError(
      'AuditInvalid',
      `the audit policy ${path} cannot be used: ${reason}; pass another with --audit-policy-file`,
      { cause },
    )
  }
}
