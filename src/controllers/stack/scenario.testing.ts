import {
  type ApprovalPolicy,
  type RunFailureReason,
  type RunPhase,
  type RunStatus,
  type StackSpec,
  workerBusyReason,
} from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import type { RevisionError } from './decision.ts'
import { Simulator } from './simulator.testing.ts'

/**
 * Plays one scenario: blocks of commands, each followed by `----` and the lines that the commands produced, up to an empty
 * line. Returns the text with the lines produced by this run. Lines that start with # are comments.
 */
export function playScenario(text: string): string {
  const simulator = new Simulator()
  const played: string[] = []
  for (const block of text.trimEnd().split('\n\n')) {
    const lines = block.split('\n')
    const end = lines.indexOf('----')
    const commands = end < 0 ? lines : lines.slice(0, end)
    for (const line of commands) if (line.trim() && !line.startsWith('#')) play(simulator, line)
    const output = simulator.drainLines()
    const isComment = commands.every(line => line.startsWith('#'))
    played.push([...commands, ...(isComment ? [] : ['----', ...output])].join('\n'))
  }
  return `${played.join('\n\n')}\n`
}

function play(simulator: Simulator, line: string): void {
  const tokens = [...line.matchAll(/(?:[^\s"]|"[^"]*")+/g)].map(([token]) => token)
  const [command = '', name = '', ...rest] = tokens
  const options = Object.fromEntries(
    rest
      .filter(token => token.includes('='))
      .map(token => [token.slice(0, token.indexOf('=')), unquote(token.slice(token.indexOf('=') + 1))]),
  )
  const positional = rest.filter(token => !token.includes('='))
  switch (command) {
    case 'stack':
      simulator.put(name, specOf(options))
      return
    case 'revision':
      simulator.setRevision(name, options.error ? { error: revisionErrorOf(options, simulator.nowMs) } : positional[0])
      return
    case 'secret': {
      const field = 'spec.variablesFrom[0].secretRef.name'
      const missing = positional[0] === 'missing' ? [{ field, reason: 'FieldValueNotFound' as const, message: 'Secret "s" not found' }] : []
      simulator.setSecret(name, positional[0] ?? '', missing)
      return
    }
    case 'annotate': {
      const names = {
        approve: 'approvedPlan',
        by: 'approvedBy',
        at: 'approvedAt',
        reject: 'rejectedPlan',
        rejecter: 'rejectedBy',
        rejectedAt: 'rejectedAt',
        why: 'rejectionReason',
        request: 'requestedRun',
        accept: 'acceptedRestore',
        imported: 'importedState',
        confirm: 'destroyPlan',
        source: 'destroySource',
      } as const
      const { targets, replace, refresh, ...given } = options
      if (given.request && (targets ?? replace ?? refresh) !== undefined) {
        const runOptions = {
          ...(targets && { targets: targets.split(',') }),
          ...(replace && { replace: replace.split(',') }),
          ...(refresh && { refresh: false }),
        }
        given.request += ` ${JSON.stringify(runOptions)}`
      }
      simulator.annotate(name, Object.fromEntries(Object.entries(given).map(([key, value]) => [names[key as keyof typeof names], value])))
      return
    }
    case 'namespace':
      simulator.approvalPolicy = name === '' ? undefined : (name as ApprovalPolicy)
      simulator.settle()
      return
    case 'approval-timeout':
      simulator.approvalTimeoutMs = parseDuration(name)
      simulator.settle()
      return
    case 'phase':
      // The worker reports the plan that it begins to apply.
      simulator.report(name, positional[0] as RunPhase, positional[0] === 'Applying' ? { ...options, plan: resultOf({}).plan } : options)
      return
    case 'succeed':
      simulator.report(name, 'Succeeded', resultOf(options))
      return
    case 'fail':
      simulator.report(name, 'Failed', {
        reason: options.reason ?? 'ApplyFailed',
        message: options.message ?? 'boom',
        retryable: options.retryable !== 'false',
      })
      return
    case 'cancel':
      simulator.report(name, 'Canceled', { message: options.message })
      return
    case 'lose':
      simulator.report(name, 'Lost', { reason: 'WorkerLost', message: 'worker w1 did not renew its Lease', ...options })
      return
    case 'reject':
      simulator.report(name, 'Lost', { reason: workerBusyReason, message: 'worker w1 had no free slot of 1' })
      return
    case 'delete-run':
      simulator.deleteRun(name)
      return
    case 'delete':
      simulator.delete(name)
      return
    case 'state': {
      const reason = ({ missing: 'StateMissing', regressed: 'StateRegressed', unreadable: 'JournalUnreadable' } as const)[
        positional[0] ?? ''
      ]
      const lock = positional[0] === 'locked' ? { holder: 'ada@laptop for surgery (lock id 1)', sinceMs: simulator.nowMs } : undefined
      simulator.setState(name, { error: reason && { reason, message: 'version 7 is required' }, lock })
      return
    }
    case 'restore':
      simulator.restore(name, Number(options.minRunNumber))
      return
    case 'advance':
      simulator.advance(parseDuration(name))
      return
    case 'crash':
      simulator.crash = name === 'afterStatus' ? 'afterStatus' : 'afterRun'
      return
    case 'jitter':
      simulator.jitter = Number(name)
      return
    case 'pause':
      simulator.isPaused = true
      return
    case 'resume':
      simulator.isPaused = false
      simulator.settle()
      return
    default:
      throw new Error(`unknown command ${JSON.stringify(line)}`)
  }
}

/** `attempts=12,40m,5m`: 12 attempts failed in 40 minutes, and the next one is due in 5. */
function revisionErrorOf({ error, message = '', retryable, attempts }: Record<string, string>, nowMs: number): RevisionError {
  const [count, since = '', next = ''] = attempts?.split(',') ?? []
  return {
    reason: error as RunFailureReason,
    message,
    retryable: retryable !== 'false',
    ...(retryable !== 'false' && { nextMs: nowMs + parseDuration(next || '5s') }),
    ...(count && { attempts: { count: Number(count), sinceMs: nowMs - parseDuration(since), lastMs: nowMs } }),
  }
}

function specOf(options: Record<string, string>): Partial<StackSpec> {
  const { dependsOn, outputsOf, retry, history, suspend, variable, deletionProtection, ...plain } = options
  const [limit, initial, max] = retry?.split(',') ?? []
  return {
    ...(plain as Partial<StackSpec>),
    ...(variable !== undefined && { variables: { variable } }),
    ...(dependsOn !== undefined && {
      dependsOn: dependsOn
        .split(',')
        .filter(Boolean)
        .map(name => ({ name })),
    }),
    ...(outputsOf !== undefined && { variablesFrom: outputsOf.split(',').map(name => ({ stackRef: { name } })) }),
    ...(retry !== undefined && { retry: { limit: Number(limit), ...(initial && { initial }), ...(max && { max }) } }),
    ...(history !== undefined && { historyLimit: Number(history) }),
    ...(suspend !== undefined && { suspend: suspend === 'true' }),
    ...(deletionProtection !== undefined && { deletionProtection: deletionProtection === 'true' }),
  }
}

function resultOf({ plan, outputs, resources, changed, digest, version }: Record<string, string>): Omit<Partial<RunStatus>, 'phase'> {
  const [add = 0, change = 0, destroy = 0] = (plan ?? '0,0,0').split(',').map(Number)
  return {
    plan: { digest: digest ?? 'sha256:0', add, change, destroy },
    changed: changed === undefined ? add + change + destroy > 0 : changed === 'true',
    ...(outputs && { outputs: { value: outputs }, outputsDigest: `sha256:${outputs}` }),
    ...(resources && { resources: Number(resources) }),
    ...(version && { stateVersion: Number(version) }),
  }
}

function unquote(text: string): string {
  return text.startsWith('"') ? text.slice(1, -1) : text
}
