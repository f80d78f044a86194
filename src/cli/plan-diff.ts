import { maxDiffBytes, type Run, type StoredDiff } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { isReason, StatusError } from '../kubernetes/object/index.ts'
import { storeErrorMessage } from '../stores/state/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { escapeControls } from './output/escape-controls.ts'
import type { Color, Paint } from './output/style.ts'
import { storeError } from './store-error.ts'

/** The plan that a Run stored. An Apply of an approved plan applies that of another Run. @throws {CliError} if it cannot be read. */
export async function readDiff(client: Client, run: Pick<Run, 'metadata' | 'spec'>): Promise<StoredDiff> {
  const { namespace = '' } = run.metadata
  const name = run.spec.approvedPlan?.runName ?? run.metadata.name
  const path = ['state', namespace, run.spec.stackRef.name, 'diff', name].map(encodeURIComponent).join('/')
  try {
    return (await (await client.request({ method: 'GET', path: `/${path}` })).json()) as StoredDiff
  } catch (error) {
    const message = error instanceof StatusError ? storeErrorMessage(error) : undefined
    if (isReason(error, 'NotFound') && message?.startsWith('no plan of Run')) {
      throw new CliError(`the plan of run/${name} is not stored`, {
        exitCode: exitCodes.notFound,
        hint: `it found no changes, has not planned yet, or is too old; make a new plan: oarlock plan ${run.spec.stackRef.name} -n ${namespace}`,
      })
    }
    throw storeError(error, `the plan of run/${name}`)
  }
}

/** The plan for a terminal or a file. A line of terraform and of manifests begins with a sign for what it does. */
export function formatDiff({ text, missing }: StoredDiff, paint: Paint): string {
  const lines = text === '' ? ['(the engine printed nothing)'] : text.split('\n')
  const shown = lines.map(line => {
    const color = colorOf(line)
    return color === undefined ? escapeControls(line) : paint(color, escapeControls(line))
  })
  return [...shown, ...(missing ? [paint('red', formatMissing(missing))] : [])].join('\n')
}

const formatMissing = ({ lines, bytes }: NonNullable<StoredDiff['missing']>): string =>
  `NOT SHOWN: ${lines} more ${lines === 1 ? 'line' : 'lines'} (${bytes} bytes): the plan is larger than ${maxDiffBytes} bytes`

function colorOf(line: string): Color | undefined {
  const [, sign = ''] = /^\s*(-\/\+|\+\/-|\+|-|~|<=)\s/.exec(line) ?? []
  if (sign === '') return undefined
  return sign === '+' ? 'green' : sign === '-' ? 'red' : sign === '<=' ? 'cyan' : 'yellow'
}
