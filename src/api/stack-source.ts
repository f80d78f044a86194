import type { Static } from 'typebox'
import { Type } from '../kubernetes/object/index.ts'
import { defaults } from './names.ts'
import { duration } from './shared.ts'

/** Maximum total size of inline files in bytes; larger sources belong in a git repository. */
export const maxInlineBytes = 524_288

const inlineSource = Type.Object(
  {
    files: Type.Record(Type.String(), Type.String(), {
      description: `File contents by relative path, at most ${maxInlineBytes} bytes in total. Paths must not be absolute and must not contain "..".`,
      minProperties: 1,
    }),
  },
  { description: 'Files that are part of the Stack object.' },
)

const pathSource = Type.Object(
  {
    path: Type.String({
      minLength: 1,
      description: 'Absolute path of a directory on the worker, below one of its --allow-path directories.',
    }),
  },
  { description: 'A directory on the machine of the worker, copied for each Run.' },
)

const gitSource = Type.Object(
  {
    url: Type.String({ minLength: 1, description: 'URL of the repository: https://, ssh:// or file://, or git@host:path.' }),
    branch: Type.Optional(
      Type.String({ minLength: 1, description: 'Branch to follow. Default: the default branch (HEAD) of the repository.' }),
    ),
    tag: Type.Optional(Type.String({ minLength: 1, description: 'Tag to use.' })),
    commit: Type.Optional(Type.String({ pattern: '^[0-9a-f]{40}([0-9a-f]{24})?$', description: 'Full hash of the commit to use.' })),
    directory: Type.Optional(Type.String({ description: 'Directory in the repository. Default: the root directory.' })),
    secretRef: Type.Optional(
      Type.Object(
        { name: Type.String({ minLength: 1 }) },
        {
          description:
            'Secret in the namespace of the Stack with username and password, or with ssh-privatekey and optionally known_hosts.',
        },
      ),
    ),
  },
  { description: 'A git repository at a commit, tag or branch.' },
)

export const sourceSchema = Type.Object(
  {
    inline: Type.Optional(inlineSource),
    path: Type.Optional(pathSource),
    git: Type.Optional(gitSource),
    interval: Type.Optional(
      duration({
        default: defaults.sourceInterval,
        description: 'How often the source is checked for a new revision, for a path, a git branch or a tag.',
      }),
    ),
  },
  { description: 'Source of the files. Exactly one of inline, path and git must be set.' },
)

const dataRef = (kind: string, description: string) =>
  Type.Optional(
    Type.Object(
      {
        name: Type.String({ minLength: 1, description: `Name of a ${kind} in the namespace of the Stack.` }),
        keys: Type.Optional(
          Type.Record(Type.String(), Type.String({ minLength: 1 }), {
            description:
              'Variable names by key, such as aws-region: aws:region, because a key cannot contain a colon. Default: every key, under its own name.',
          }),
        ),
        format: Type.Optional(
          Type.Enum(['Text', 'JSON'], {
            default: 'Text',
            description: 'Text: each value is a string. JSON: each value is parsed, for numbers, lists and objects.',
          }),
        ),
      },
      { description },
    ),
  )

export const variablesFromSchema = Type.Object(
  {
    stackRef: Type.Optional(
      Type.Object(
        {
          name: Type.String({
            minLength: 1,
            description: 'Name of a Stack in the same namespace. The Stack is an implicit dependency, as in dependsOn.',
          }),
          outputs: Type.Optional(
            Type.Record(Type.String(), Type.String(), {
              description: 'Variable names by output name. Default: every output, under its own name.',
            }),
          ),
        },
        { description: 'Uses the outputs of another Stack as variables.' },
      ),
    ),
    secretRef: dataRef('Secret', 'Uses keys of a Secret as variables. The values are masked in logs.'),
    configMapRef: dataRef('ConfigMap', 'Uses keys of a ConfigMap as variables.'),
  },
  { description: 'A source of variables. Exactly one of stackRef, secretRef and configMapRef must be set.' },
)

/** The keys of the Secret in `spec.source.git.secretRef` that have a meaning. */
export const gitSecretKeys = ['username', 'password', 'ssh-privatekey', 'known_hosts'] as const

export type StackSource = Static<typeof sourceSchema>
export type VariablesFrom = Static<typeof variablesFromSchema>
