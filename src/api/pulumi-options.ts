import { Type } from '../kubernetes/object/index.ts'
import { urnPattern } from './run-options.ts'

const urns = (description: string) =>
  Type.Optional(
    Type.Array(Type.String({ maxLength: 1024, pattern: urnPattern }), {
      minItems: 1,
      maxItems: 64,
      description: `${description} At most 64 URNs.`,
    }),
  )

/** `spec.pulumi` of a Stack. */
export const pulumiSchema = Type.Object(
  {
    stack: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9_.-]{1,100}$',
        description: 'Name of the Pulumi stack, which is part of every URN. Default: the name of the Stack.',
      }),
    ),
    refresh: Type.Optional(
      Type.Boolean({ default: false, description: 'Reads all resources before each preview and update, and records what has changed.' }),
    ),
    runProgram: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Runs the program during refresh and destroy too, for providers that are configured with values of the program.',
      }),
    ),
    targets: urns('Only these resources are planned and changed.'),
    targetDependents: Type.Optional(
      Type.Boolean({ default: false, description: 'Resources that depend on the targets are planned and changed too.' }),
    ),
    replace: urns('Resources that every update replaces, even if nothing has changed.'),
    parallel: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 256, description: 'Maximum number of concurrent operations. Default: that of the CLI.' }),
    ),
    continueOnError: Type.Optional(
      Type.Boolean({ default: false, description: 'Continues with resources that do not depend on one that failed.' }),
    ),
    policyPacks: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
        minItems: 1,
        maxItems: 16,
        description: 'Directories of policy packs, relative to the root of the source.',
      }),
    ),
    pendingCreates: Type.Optional(
      Type.Enum(['Stop', 'Clear', 'Import'], {
        default: 'Stop',
        description:
          'What happens to resources whose creation was interrupted, so that it is unknown whether they exist. Stop: the Stack is Stalled (PendingCreates) until a user decides. Clear: they are forgotten, and created again; those in importPendingCreates are imported. Import: those in importPendingCreates are imported, and with any other the Stack is Stalled.',
      }),
    ),
    importPendingCreates: Type.Optional(
      Type.Array(
        Type.Object({
          urn: Type.String({
            maxLength: 1024,
            pattern: urnPattern,
            description: 'URN of the resource, as status.pendingOperations of the Run has it.',
          }),
          id: Type.String({
            minLength: 1,
            maxLength: 1024,
            pattern: '^[^\\x00-\\x1f]+$',
            description: 'ID that the provider has given it, in the format of "pulumi import".',
          }),
        }),
        {
          minItems: 1,
          maxItems: 64,
          description:
            'Resources that exist although their creation was interrupted: the next Run reads them from the provider into the state. Entries without an interrupted creation have no effect. At most 64.',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['urn'],
        },
      ),
    ),
    approvalBinding: Type.Optional(
      Type.Enum(['Plan', 'Inputs'], {
        default: 'Plan',
        description:
          'What an approval covers. Plan: the update is constrained to the operations of the approved plan (--plan); a refresh, for which the CLI has no plan, fails (ApprovalNotBound). Inputs: a refresh too, whose approval covers the source, the configuration and the state that were previewed.',
      }),
    ),
    installEnvironment: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 253, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }), {
        maxItems: 64,
        description:
          'Names of variables with credentials that the installation of dependencies gets too, for example for a private registry. Without it, values from Secrets and from the engineEnvironment of the pool reach only the commands of the CLI.',
      }),
    ),
  },
  { description: 'Options of engine pulumi.' },
)
