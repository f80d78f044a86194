import { AppStartError } from '../app-start-error.ts'
import type { ClaimRefusal, Generation } from '../discovery/index.ts'
import { formatHolder } from './stores-lease.ts'

/** These are not the stores of the installation. */
export function refusedError(dataDir: string, id: string, refusal: ClaimRefusal): AppStartError {
  if (refusal.kind === 'other') {
    return new AppStartError(
      'DataDirectory',
      `the states in ${dataDir} (${id}) are not those of this installation (${refusal.id}): engines would use the wrong states`,
      'choose the right directory with --data; after a restore, --replace-stores makes the installation use these states',
    )
  }
  const { own, claimed } = refusal
  return new AppStartError(
    'DataDirectory',
    `the states in ${dataDir} are an older copy (${formatGeneration(own)}): those of this installation were used later (${formatGeneration(claimed)})`,
    'start the stores of the directory that was used last; --replace-stores uses this copy, and loses what was written since: resources that were created since then are created again',
  )
}

const formatGeneration = ({ number, time }: Generation) => `generation ${number}${time === '' ? '' : ` of ${time}`}`

/** Another process holds the Lease of the stores. */
export const heldError = (holder: string, url: string | undefined): AppStartError =>
  new AppStartError(
    'DataDirectory',
    `the states of this installation are served by ${formatHolder(holder)}${url === undefined ? '' : ` at ${url}`}`,
    'stop that process first: changes to one of two copies of the states are lost in the other one',
  )
