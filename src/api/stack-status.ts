import { conditionsSchema, Type } from '../kubernetes/object/index.ts'
import { recoveryFields } from './recovery-fields.ts'
import { runOptionsSchema } from './run-options.ts'
import { count, planSummary } from './shared.ts'

/** What the stack controller records of a Stack: its conditions, what was applied last, and the plan that awaits approval. */
export const stackStatusSchema = Type.Object({
  observedGeneration: Type.Optional(count('The generation of the spec that this status describes.')),
  conditions: Type.Optional(conditionsSchema),
  lastRunNumber: Type.Optional(
    count('Number of the newest Run, which is the epoch of that Run and part of its name (invariants 1 and 3).'),
  ),
  ...recoveryFields,
  lastRun: Type.Optional(
    Type.Object(
      {
        name: Type.String({ description: 'Name of the Run.' }),
        type: Type.String({ description: 'Type of the Run.' }),
        phase: Type.String({ description: 'Phase of the Run as last observed.' }),
        reason: Type.String({ description: 'Why the Run was created.' }),
        finishedAt: Type.Optional(Type.String({ format: 'date-time', description: 'When the Run ended.' })),
      },
      { description: 'The newest Run.' },
    ),
  ),
  applied: Type.Optional(
    Type.Object(
      {
        generation: count('Generation of the Stack.'),
        revision: Type.String({ description: 'Revision of the source.' }),
        inputsDigest: Type.String({ description: 'Digest of the outputs, Secrets and ConfigMaps that were used.' }),
        at: Type.String({ format: 'date-time', description: 'When the Run ended.' }),
        runName: Type.String({ description: 'Name of the Run.' }),
        specDigest: Type.Optional(Type.String({ description: 'Digest of the fields of the spec that affect the infrastructure.' })),
        overwrittenBy: Type.Optional(
          Type.String({
            description:
              'Name of a later Run that has or may have applied only part of its inputs: one that did not succeed, or one with targets. The next complete Apply removes it.',
          }),
        ),
      },
      { description: 'The inputs of the last successful Apply.' },
    ),
  ),
  plan: Type.Optional(
    Type.Object(
      {
        digest: Type.String({ description: 'Digest of the plan; the value to approve.' }),
        runName: Type.String({ description: 'Name of the Run that created the plan.' }),
        specDigest: Type.Optional(
          Type.String({ description: 'Digest of the fields of the spec that affect the plan or how it is applied.' }),
        ),
        generation: count('Generation of the Stack.'),
        revision: Type.String({ description: 'Revision of the source.' }),
        inputsDigest: Type.String({ description: 'Digest of the outputs, Secrets and ConfigMaps that were used.' }),
        mode: Type.Optional(
          Type.Enum(['Refresh'], { description: 'Refresh: it changes only the state. Default: the changes of an Apply, or of a Destroy.' }),
        ),
        options: Type.Optional(runOptionsSchema),
        ...planSummary,
      },
      { description: 'The newest plan that awaits approval, or that was rejected.' },
    ),
  ),
  approval: Type.Optional(
    Type.Object(
      {
        digest: Type.String({ description: 'Digest of the approved plan.' }),
        user: Type.Optional(Type.String({ description: 'The user who approved, as the API server authenticated it.' })),
        at: Type.String({
          format: 'date-time',
          description: 'When it was approved; on a kube-apiserver, when the controller first saw it.',
        }),
        expiresAt: Type.Optional(
          Type.String({ format: 'date-time', description: 'When it expires, also if --approval-timeout of the controller changes later.' }),
        ),
        requestedAt: Type.Optional(Type.String({ description: 'The annotation oarlock.dev/approved-at. A new value is a new approval.' })),
        runName: Type.Optional(
          Type.String({
            description: 'Name of the Run whose plan it approves. Unset if that plan did not await approval: then it is void.',
          }),
        ),
      },
      { description: 'The last approval. It is valid for one plan, once, until it expires.' },
    ),
  ),
  rejection: Type.Optional(
    Type.Object(
      {
        digest: Type.String({ description: 'Digest of the rejected plan.' }),
        user: Type.Optional(Type.String({ description: 'The user who rejected, as the API server authenticated it.' })),
        reason: Type.Optional(Type.String({ description: 'Why, in the words of the user.' })),
        at: Type.String({
          format: 'date-time',
          description: 'When it was rejected; on a kube-apiserver, when the controller first saw it.',
        }),
        requestedAt: Type.Optional(Type.String({ description: 'The annotation oarlock.dev/rejected-at. A new value is a new rejection.' })),
        runName: Type.Optional(
          Type.String({
            description: 'Name of the Run whose plan it rejects. Unset if that plan did not await approval: then it is void.',
          }),
        ),
      },
      {
        description:
          'The last rejection of a plan. That plan is not applied; another one follows when the Stack, its source or its inputs change, or a user requests one.',
      },
    ),
  ),
  checkedAt: Type.Optional(Type.String({ format: 'date-time', description: 'When a Run last compared the resources with the Stack.' })),
  failures: Type.Optional(count('Number of consecutive failed Runs with the current inputs.')),
  failingSince: Type.Optional(
    Type.String({ format: 'date-time', description: 'When the first of the consecutive Runs that failed or were lost ended.' }),
  ),
  sameFailure: Type.Optional(
    Type.Object(
      {
        digest: Type.String({ description: 'Digest of the reason and the message, without parts that differ with each Run.' }),
        count: count('Number of consecutive Runs that failed this way, regardless of their revision.'),
        generation: count('Generation of the Stack whose failed Runs were counted. A new generation resets the count.'),
      },
      { description: 'The failure that consecutive Runs have in common.' },
    ),
  ),
  nextRunAt: Type.Optional(Type.String({ format: 'date-time', description: 'When the next retry or drift check is due.' })),
  handledRequest: Type.Optional(Type.String({ description: 'The last handled value of the annotation oarlock.dev/requested-run.' })),
  outputs: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Outputs that are not secret. The Secret <stack>-outputs contains all of them.',
    }),
  ),
  outputsDigest: Type.Optional(Type.String({ description: 'Digest of all outputs, including secret ones.' })),
  resources: Type.Optional(count('Number of resources that the Stack manages.')),
})
