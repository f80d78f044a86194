import type { SupervisorMessage, SupervisorReply } from '../supervisor/supervisor-protocol.ts'

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(3)}s`

/** A message of the supervisor's protocol on one line. */
export function formatMessage(message: SupervisorMessage | SupervisorReply): string {
  switch (message.kind) {
    case 'hello':
      return `hello, Lease renewed at ${seconds(message.renewedAtMs)}`
    case 'run':
      return `run ${message.run.uid}${message.run.endsByMs === undefined ? '' : `, ends by ${seconds(message.run.endsByMs)}`}`
    case 'started':
    case 'ended':
      return `${message.kind} group ${message.processGroupId} of ${message.uid}`
    case 'saved':
      return `saved ${message.digest} of ${message.uid}`
    default:
      return 'uid' in message ? `${message.kind} ${message.uid}` : message.kind
  }
}
