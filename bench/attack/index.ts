import { accountAttacks } from './attacks/accounts.ts'
import { ansibleAttacks } from './attacks/ansible.ts'
import { httpAttacks } from './attacks/http.ts'
import { joinedWorkerAttacks } from './attacks/joined-workers.ts'
import { runLimitAttacks } from './attacks/limits-of-runs.ts'
import { limitsWithoutCgroupAttacks } from './attacks/limits-without-cgroup.ts'
import { outputAttacks } from './attacks/output.ts'
import { providerCacheAttacks } from './attacks/provider-cache.ts'
import { referenceAttacks } from './attacks/references.ts'
import { sandboxAttacks } from './attacks/sandbox.ts'
import { sharedFileAttacks } from './attacks/shared-files.ts'
import { workerPodAttacks } from './attacks/worker-pods.ts'
import { workerProcessAttacks } from './attacks/worker-process.ts'
import { workerAttacks } from './attacks/workers.ts'

export { type Attack, NotRunHere, type Outcome, runAttack } from './attack.ts'
export { Target } from './target.ts'

export const attacks = [
  ...sandboxAttacks,
  ...sharedFileAttacks,
  ...providerCacheAttacks,
  ...runLimitAttacks,
  ...limitsWithoutCgroupAttacks,
  ...workerProcessAttacks,
  ...ansibleAttacks,
  ...referenceAttacks,
  ...accountAttacks,
  ...outputAttacks,
  ...workerAttacks,
  ...joinedWorkerAttacks,
  ...workerPodAttacks,
  ...httpAttacks,
]
